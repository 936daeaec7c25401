"""Running a sweep: trials in lanes, attempts, retries, adoption, what is kept of each.

``requested`` turns the command's options into a plan, ``fit`` looks at the nodes before the first
trial, ``opened`` makes or resumes the sweep's folder, ``campaign`` holds what is open meanwhile,
``loop`` goes through the trials, ``attempts`` runs or adopts one attempt, ``outcomes`` keeps what
it came to. Nothing here knows SSH or Docker: gangs are run by ``schedulers/``. When a trial is
tried again is in ``attempts``; what makes one invalid, and what a failure is called, are rules in
``measuring/``.
"""
