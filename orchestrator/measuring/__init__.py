"""From what logs say to numbers, and whether they count. Pure.

``measure`` has the rules of throughput and medians and of what makes a trial invalid, ``proof``
whether the transport was the one asked for, ``published`` finds comparable published results,
``known`` adds what a workload knows of its cases.
"""
