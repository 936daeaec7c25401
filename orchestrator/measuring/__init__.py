"""From what logs say to numbers, and whether they count. Pure.

``judge`` measures a log against its case and says what makes a trial invalid, ``endings`` what a
gang that ended badly came to; ``measure`` has the rules of throughput, medians and speedups,
``proof`` whether the transport was the one asked for; ``names`` reads DLPerf's names of logs,
``published`` finds comparable published results, ``known`` adds what a workload knows of its cases.
"""
