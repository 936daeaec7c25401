"""Commands that submit themselves to Slurm: on a login node, where no step can be started."""
