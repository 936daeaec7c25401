"""Running a sweep: trials in lanes, attempts, retries, adoption, outcomes.

``requested`` turns the command's options into a plan, ``resume`` finds the sweep to go on with or
begins one, ``campaign`` holds nodes and sweeps and looks at the nodes before the first trial,
``loop`` gives out the trials, ``attempts`` runs, adopts and judges one attempt, and ``closing``
ends what still runs of it. ``observed_sweep`` reads from files what may run. Nothing here knows SSH
or Docker: gangs are run by ``schedulers/``. After which errors a trial is tried again, and how
often, is in ``retries.py``; whether a recorded outcome counts, in ``collecting/evidence``; what
makes a trial invalid, and what a failure is called, are rules in ``measuring/``.
"""
