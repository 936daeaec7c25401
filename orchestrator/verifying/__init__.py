"""Every number derived once more from raw logs, by plain readers of their own.

Nothing here is shared with ``logs``, ``measuring``, ``telemetry``, ``workloads``, ``report`` or
``collecting``: a fault of theirs must show. ``check`` goes through a sweep's folder; ``records``
reads its files and compares checksums. The ``plain_`` modules read logs and observers' files;
``trials``, ``damages`` and ``machines`` derive what a trial gave, ``cases``,
``scatter`` and ``nodes`` what several give. ``documents`` says what results.json must hold,
``reports`` compares it, ``exports`` the files for programs; ``pages`` takes reports for people
apart, ``shown`` says what they are about, and ``tables``, ``figures`` and ``texts`` compare them.
"""
