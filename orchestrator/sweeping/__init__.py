"""Running a sweep: trials in lanes, attempts, retries, adoption, what is kept of each.

``requested`` turns the command's options into a plan, ``fit`` looks at the nodes before the first
trial, ``opened`` makes or resumes the sweep's folder, ``campaign`` holds what is open meanwhile,
``loop`` goes through the trials, ``attempts`` runs or adopts one attempt, ``outcomes`` says what it
came to. Nothing here knows SSH or Docker: gangs are run by ``schedulers/``. A newcomer who changes
when a trial is tried again begins in ``attempts``; what a failure is called is in ``outcomes``.
"""
