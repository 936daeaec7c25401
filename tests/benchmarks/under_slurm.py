"""A trial that exits at once under Slurm, beside plain srun of the same script, on four nodes.

And what no controller of ours could do without: the gate alone, and supervised tasks, by hand.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.table import Row, between_trials_s, must, spread
from tests.cluster import cluster
from tests.people import Login

HERE = Path(__file__).parent
SWEEPS, TRIALS = 3, 11
# Steps of each kind in turns, with the times before and after each; a file for each task, as we
# have a log. A gate is on standard input, where one line opens it for all tasks.
STEPS = """\
#!/bin/sh
cd {folder} || exit
attempt=$(echo .dlperf/sweeps/*/attempts/*_1/a1)
attempt=$PWD/${{attempt##* }}
step="srun --overlap --nodes=4 --ntasks=4"

opened() {{ # FILES: once all are there, the gate
    exec 3>gate
    for file; do until [ -s "$file" ]; do sleep 0.002; done; done
    echo go >&3
    exec 3>&-
    wait
}}
plain() {{
    $step --output=plain-%t.log sh print.sh 4
}}
gated() {{
    $step --input=all --output=plain-%t.log sh -c '
        echo here >"here$SLURM_PROCID"
        read -r word
        exec sh print.sh 4
    ' <gate &
    opened here0 here1 here2 here3
}}
supervised() {{ # the same files as those of an attempt of ours
    $step --input=all --kill-on-bad-exit=1 sh "$PWD/hand/step.sh" "$PWD/hand" <gate >said &
    opened hand/r0.pid hand/r1.pid hand/r2.pid hand/r3.pid
}}

rm -f gate
mkfifo gate
for number in $(seq {steps}); do
    for kind in plain gated supervised; do
        rm -rf hand here*
        mkdir hand
        for file in "$attempt"/*.task "$attempt"/*.sh; do
            sed "s,$attempt,$PWD/hand,g" "$file" >"hand/${{file##*/}}"
        done
        began=$(date +%s.%N)
        $kind
        echo "$kind $began $(date +%s.%N)"
    done
done
"""


def rows() -> Iterator[Row]:
    """Each a job of its own, in turns."""
    with cluster(4, slurm=True) as nodes:
        login = Login.made(nodes, "instant")
        shutil.copytree(HERE / "instant" / "place", login.folder, dirs_exist_ok=True)
        login.inventory(nodes=4, time="04:00:00")
        login.more_env["PYTHONPATH"] = f"{login.env['PYTHONPATH']}:{HERE / 'instant'}"
        shutil.copy(login.folder / "images" / "instant" / "print.sh", login.folder)
        script = login.folder / "steps.sh"
        script.write_text(STEPS.format(steps=TRIALS - 1, folder=login.folder))
        words = ("sweep", "instant", "--inventory", "queue", "--new", "--repeats", str(TRIALS))
        ours_s: list[float] = []
        by_hand_s: dict[str, list[float]] = {}
        for _ in range(SWEEPS):
            must(login.run, *words)
            ours_s += between_trials_s(login.sweep())
            out = login.folder / "steps.out"
            submit = ("sbatch", "--wait", "--nodes=4", "--exclusive", f"--output={out}")
            login.slurm.ask(*submit, str(script))
            for line in out.read_text().splitlines():
                kind, began, ended = line.split()
                by_hand_s.setdefault(kind, []).append(float(ended) - float(began))
        login.end()
    plain_s = by_hand_s["plain"]
    spread("trial under Slurm", ours_s, plain_s)
    yield Row("trial that exits at once, Slurm", median(ours_s), "srun", median(plain_s), 1.2)
    for kind, what in (("gated", "a gate alone"), ("supervised", "supervised tasks")):
        spread(f"{what} by hand", by_hand_s[kind], plain_s)
        named = f"{what} by hand, Slurm"
        yield Row(named, median(by_hand_s[kind]), "srun", median(plain_s), 0)
