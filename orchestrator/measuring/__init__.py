"""From logs to numbers, and whether the numbers count. Pure.

``throughputs`` takes a trial's throughput from its log, ``validity`` decides what makes a trial
invalid, ``proof`` compares the transport with the requested one, ``endings`` gives state and
problem of a gang that ended badly; ``medians`` makes the result of a case: median, interval,
speedup. ``names`` reads DLPerf's names of logs, ``published`` finds comparable published results,
``case_facts`` adds what a workload knows of its cases.
"""
