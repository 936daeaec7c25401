"""Schedulers give nodes and run gangs on them; nothing outside this room knows how.

``scheduler`` says what each does, and does what all share: it runs a ``gang`` on a fleet.
``fanout`` gives nodes over SSH and on this machine, kept from other controllers by ``locks``;
``slurm`` gives those of a job, whose steps run ``slurm_tasks``. To add one, write a module here
with a subclass of ``Scheduler``, and choose it in ``choice`` by what the inventory says.
"""
