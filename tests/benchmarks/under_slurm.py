"""A trial that exits at once under Slurm, beside plain srun of the same script, on four nodes."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.table import Row, between_trials_s, must, spread
from tests.cluster import cluster
from tests.login import Login

HERE = Path(__file__).parent
SWEEPS, TRIALS = 3, 11
# The times before each step and after the last; a file for each task, as we have a log.
PLAIN = """\
#!/bin/sh
for step in $(seq {steps}); do
    date +%s.%N
    srun --overlap --nodes=4 --ntasks=4 --output={folder}/plain-%t.log sh {folder}/print.sh 4
done
date +%s.%N
"""


def rows() -> Iterator[Row]:
    """Each a job of its own, in turns."""
    with cluster(4, slurm=True) as nodes:
        login = Login.made(nodes, "instant")
        shutil.copytree(HERE / "instant" / "place", login.folder, dirs_exist_ok=True)
        login.inventory(nodes=4, time="04:00:00")
        login.more_env["PYTHONPATH"] = f"{login.env['PYTHONPATH']}:{HERE / 'instant'}"
        shutil.copy(login.folder / "images" / "instant" / "print.sh", login.folder)
        script = login.folder / "plain.sh"
        script.write_text(PLAIN.format(steps=TRIALS - 1, folder=login.folder))
        words = ("sweep", "instant", "--inventory", "queue", "--new", "--repeats", str(TRIALS))
        ours_s, peer_s = [], []
        for _ in range(SWEEPS):
            must(login.run, *words)
            ours_s += between_trials_s(login.sweep())
            out = login.folder / "plain.out"
            submit = ("sbatch", "--wait", "--nodes=4", "--exclusive", f"--output={out}")
            login.slurm.ask(*submit, str(script))
            moments = [float(line) for line in out.read_text().splitlines()]
            peer_s += [later - sooner for sooner, later in itertools.pairwise(moments)]
        login.end()
    spread("trial under Slurm", ours_s, peer_s)
    yield Row("trial that exits at once, Slurm", median(ours_s), "srun", median(peer_s), 1.2)
