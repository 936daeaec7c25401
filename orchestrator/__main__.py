"""Where the program begins: requests to end are heard before anything that takes long."""

from orchestrator.signals import SIGNALS


def main() -> None:
    """Run the command line."""
    SIGNALS.take()
    from orchestrator import cli

    cli.main()


if __name__ == "__main__":
    main()
