"""Whether two sets of measured cases differ: exact tests, intervals, verdicts, and their reports.

``rank_test`` and ``ratios`` are the statistics, ``sizes`` says how many trials would tell,
``verdicts`` judges all cases of a comparison together. ``sides`` reads what is compared from
results.json, ``pairing`` says which cases belong together, ``surroundings`` what else differs,
``bounds`` learns a case's noise from earlier sweeps. ``document``, ``markdown`` and
``junit`` are the forms of its report. Pure.
"""
