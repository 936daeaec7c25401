"""Running a sweep: trials in lanes, attempts, retries, adoption, outcomes.

``requested`` turns the command's options into a plan, ``node_checks`` looks at the nodes before the
first trial, ``resume`` finds the sweep to go on with or begins one, ``campaign`` holds what is open
meanwhile, ``loop`` goes through the trials, ``attempts`` runs or adopts one attempt, ``outcomes``
keeps what it came to; ``leftovers`` is what `clean` removes afterwards, ``kept_by_clean`` what it
does not. Nothing here knows SSH or Docker: gangs are run by ``schedulers/``. When a trial is tried
again is in ``attempts``, after which errors and how often in ``retries.py``; whether one that ended
is measured anew, in ``outcomes`` by ``collecting/evidence``; what makes one invalid, and what a
failure is called, are rules in ``measuring/``.
"""
