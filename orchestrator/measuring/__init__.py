"""Computes numbers from logs, and decides which of them count. Pure.

``throughputs`` takes a trial's throughput from its log. ``validity``, ``transport_proof`` and
``collecting/evidence`` decide which trials are invalid; ``endings`` describes a gang that ended
badly. ``medians`` makes the result of a case (median, interval, outliers, speedup) and judges the
canary; ``settling`` decides when a case needs no further trial; ``node_speeds`` finds slow nodes.
``names`` reads DLPerf's names of logs, ``published`` and ``hardware`` find comparable published
results; ``published`` adds facts of the workload, too.
"""
