"""What the observer of a task wrote about its node, read and judged. Pure.

``read`` takes the observer's files, ``judge`` sums them up over the window and decides on marks,
``course`` cuts a trial's time into few pieces for a figure. What is looked at, and how often, is in
``runtimes/observer``. A new mark of a machine's state is a rule in ``judge``.
"""
