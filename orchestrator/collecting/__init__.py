"""Logs to reports: of a sweep's folder, or of a folder of logs that no sweep of ours made.

``sweep`` and ``folder`` measure; ``logs`` reads one log; ``evidence`` decides whether a recorded
outcome still counts, ``nodes_seen`` adds what a gang's nodes recorded, ``causes`` finds the error
of a failed program; ``report_files`` writes the files and shows the table,
``explanation`` derives one number. ``sides`` finds what ``compare`` is to compare. How a number is
computed, and what makes a trial invalid, is in ``measuring/``, how a report looks in ``report/``.
"""
