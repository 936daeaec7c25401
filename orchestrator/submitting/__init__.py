"""Commands that submit themselves to Slurm: on a login node, where no step can be started.

``script`` writes the batch script (pure), ``submit`` finds or submits the job, ``follow`` reports
its states and its output until it ends; ``jobs`` finds and ends them for other commands;
``one_step`` asks a single node of a partition, for ``init``.
Come here to change what a job is asked for, or what is said of it.
"""
