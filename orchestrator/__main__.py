"""Where the program begins: requests to end are heard before anything that takes long."""

import gc

from orchestrator.signals import SIGNALS


def main() -> None:
    """Run the command line."""
    SIGNALS.take()
    gc.set_threshold(100_000, 50, 100)  # what modules make at the start is kept: 7 % of a start
    from orchestrator import cli

    cli.main()


if __name__ == "__main__":
    main()
