"""Compare two sets of measured cases: intervals, verdicts, a gate, and their reports.

``verdicts`` judges all cases of a comparison by the intervals of their differences, with
``rank_test`` beside them; ``sizes`` says about how many more trials would tell. ``sides`` reads
what is compared from results.json, ``pairing`` says which cases belong together, ``surroundings``
what else differs, ``bounds`` learns a case's noise from earlier sweeps. ``document``, ``markdown``
and ``junit`` are the forms of its report. Pure.
"""
