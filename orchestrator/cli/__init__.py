"""The command line. A new command is a module in ``verbs/`` and an entry in ``command``."""

from orchestrator.cli.app import main

__all__ = ["main"]
