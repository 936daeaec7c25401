"""Logs to reports: of a sweep's folder, or of a folder of logs that no sweep of ours made.

``sweep`` and ``folder`` measure; ``logs`` reads one log and judges it against its case;
``evidence`` says whether what lies here still counts, ``fabric`` what NCCL took between nodes,
``causes`` what a failed program said; ``written`` and ``present`` write the files and show the
table. How a number is computed is in ``measuring/``, how a report looks in ``report/``.
"""
