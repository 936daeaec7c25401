"""A helper that every run uses, and the name of what pure FP16 is made of, which none asks for."""


class FP16_Optimizer:
    """What no optimizer here is."""


def to_python_float(value):
    """The number in a tensor of one."""
    return float(value)
