"""Every number derived once more from raw logs, by plain readers of their own.

Nothing here is shared with ``logs``, ``measuring``, ``workloads``, ``report`` or ``collecting``: a
fault of theirs must show. ``check`` goes through a sweep's folder; ``records`` reads its files and
compares checksums; ``plain_log`` and ``plain_nccl`` read logs, line by line; ``trials`` and
``cases`` derive numbers; ``tables`` compares the report's tables.
"""
