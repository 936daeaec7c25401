"""Start the program: signals are handled before anything slow is imported."""

import gc

from orchestrator.signals import SIGNALS

COLLECTED = (100_000, 50, 100)
"""Thresholds of the garbage collector: with Python's own, 7 % of a start is spent on what stays."""


def main() -> None:
    """Run the command line."""
    SIGNALS.take()
    gc.set_threshold(*COLLECTED)
    from orchestrator import cli

    try:
        cli.main()
    finally:
        gc.freeze()  # else the interpreter looks through everything once more before it ends


if __name__ == "__main__":
    main()
