"""Where the program begins: requests to end are heard before anything that takes long."""

import gc

from orchestrator.signals import SIGNALS

COLLECTED = (100_000, 50, 100)
"""After how many objects garbage is collected: what modules make at the start stays, 7 % of it."""


def main() -> None:
    """Run the command line."""
    SIGNALS.take()
    gc.set_threshold(*COLLECTED)
    from orchestrator import cli

    try:
        cli.main()
    finally:
        gc.freeze()  # no garbage is sought in what ends with the process: of 2,000 logs, for long


if __name__ == "__main__":
    main()
