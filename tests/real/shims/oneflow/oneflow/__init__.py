"""OneFlow, as far as a program can tell that never looks at what was computed."""

from computes_nothing import take_over

take_over(__name__)
del take_over  # nothing is left here but what is made up
