"""From logs to numbers, and whether the numbers count. Pure.

``judge`` measures a log against its case and decides whether a trial is valid, ``endings`` gives
state and problem of a gang that ended badly; ``measure`` has the rules of throughput, medians and
speedups, ``proof`` compares the transport with the requested one; ``names`` reads DLPerf's names of
logs, ``published`` finds comparable published results, ``case_facts`` adds what
a workload knows of its cases.
"""
