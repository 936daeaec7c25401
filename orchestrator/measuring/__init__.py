"""From logs to numbers, and whether the numbers count. Pure.

``throughputs`` takes a trial's throughput from its log. ``validity`` decides what makes a trial
invalid; so do ``transport_proof``, which compares the transport with the requested one, and
``collecting/evidence``. ``endings`` gives state and problem of a gang that ended badly; ``medians``
makes the result of a case: median, interval, speedup. ``settling`` says when a case needs no
further trial; ``series``, ``canary`` and ``node_speeds`` tell outliers, drift and slow
nodes. ``names`` reads DLPerf's names of logs, ``published`` finds comparable published results,
``case_facts`` adds what a workload knows of its cases.
"""
