"""The command line: what every command shares.

``command`` names them and makes one of a function in ``verbs`` (``--json``, ``--state``, ``-v``,
errors, signals), ``options`` has the options of several. A new command is a module in ``verbs/``
and an entry in ``command``.
"""

from orchestrator.cli.app import main

__all__ = ["main"]
