"""Running a sweep: trials in lanes, attempts, retries, adoption, outcomes.

``requested`` turns the command's options into a plan, ``under_way`` holds the nodes and looks at
them before the first trial, ``resume`` finds the sweep to go on with or begins one, ``campaign``
holds what is open meanwhile, ``loop`` goes through the trials, ``attempts`` runs or adopts one
attempt, ``outcomes`` keeps what it came to, and ``closing`` is the one place where an attempt ends.
``observed_sweep`` reads from files what may run; ``leftovers`` asks nodes what `clean` removes and
what it keeps. Nothing here knows SSH or Docker: gangs are run by ``schedulers/``. When a trial is
tried again is in ``attempts``, after which errors and how often in ``retries.py``; whether one that
ended is measured anew, in ``outcomes`` by ``collecting/evidence``; what makes one invalid, and what
a failure is called, are rules in ``measuring/``.
"""
