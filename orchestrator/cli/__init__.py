"""The command line: arguments and exit codes, and nothing else.

``options`` holds what several commands take, ``command`` what all share (``--json``, ``--state``,
``-v``, errors, signals); ``provisioning``, ``sweeps``, ``upkeep`` and ``files`` are the commands. A
new command is a thin module in ``verbs/`` and a function in one of these.
"""

from orchestrator.cli.app import main

__all__ = ["main"]
