"""The command line: what every command shares.

``commands`` names them, ``command`` makes one of a function in ``verbs`` (``--json``, ``--state``,
``-v``, errors, signals), ``options`` has the options of several. A new command is a module in
``verbs/`` and an entry in ``commands``.
"""

from orchestrator.cli.app import main

__all__ = ["main"]
