"""What the main job costs: start-up, overhead per trial, reading of logs, memory.

    python tests/benchmarks/main_job.py

Takes a few minutes and 1.2 GB below the folder for temporary files, and prints plain lines. No
figure is a promise: what else the machine does is in all of them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

from orchestrator import logs

TESTS = Path(__file__).resolve().parents[1]
PROGRAM = str(Path(sys.executable).with_name("dlperf-orch"))
STARTS, REPEATS, LOGS = 10, 5, 2000
RATES = {"1n1g": 802.9, "1n8g": 6154.66, "2n8g": 11991.94, "4n8g": 22551.16}
READ = logs.reader(logs.DLLOGGER, (25, 125))
BATCH = 256
STEPS = 890  # 100 kB of log
LINE_BYTES = 112
HEADER = (
    "DLL {began} - PARAMETER data : /data/image  data_backend : dali-cpu  arch : resnet50"
    "  num_classes : 1000  epochs : 1  run_epochs : -1  batch_size : {batch}  fp16 : False"
    "  static_loss_scale : 1  dynamic_loss_scale : True  prof : {prof}  amp : True"
    "  memory_format : nchw  distributed : True  world_size : {world} \n"
)


def main() -> None:
    """Print every figure."""
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    # As after an installation, where modules are compiled once and not at every start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="dlperf-benchmark-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        started_s = startup()
        overhead(Path(folder) / "place", started_s)
        reading(Path(folder) / "logs")
        memory(Path(folder) / "one.log")


def startup() -> float:
    """Print how long the program needs to answer, beside its peers; median seconds of ours."""
    print(f"\nstart-up, median of {STARTS}:")
    peers = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "python -c 'import typer'": (sys.executable, "-c", "import typer"),
        "dlperf-orch --help": (PROGRAM, "--help"),
    }
    seconds = 0.0
    for name, argv in peers.items():
        seconds = median(lasting_s(argv) for _ in range(STARTS))
        print(f"  {name:26} {seconds * 1000:7.0f} ms")
    return seconds


def overhead(place: Path, started_s: float) -> None:
    """Print what a trial costs beyond its programs, which are also run without us."""
    shutil.copytree(TESTS / "toy" / "place", place)
    env = {**os.environ, "PYTHONPATH": str(TESTS / "toy"), "DLPERF_STATE": str(place / "state")}
    words = (PROGRAM, "sweep", "toy", "--repeats", str(REPEATS))
    dry = subprocess.run(
        [*words, "--dry-run", "--json"], cwd=place, env=env, capture_output=True, check=True
    )
    trials = json.loads(dry.stdout)["plan"]["trials"]
    alone_s = sum(gang_s(trial["tasks"], env) for trial in trials)
    sweep_s, again_s = (lasting_s(words, cwd=place, env=env) for _ in range(2))
    print(f"\na sweep of {len(trials)} trials of the toy workload, on 1 and on 4 ranks:")
    print(f"  its programs alone         {alone_s:7.2f} s")
    print(f"  the sweep                  {sweep_s:7.2f} s")
    print(f"  the sweep, nothing to do   {again_s:7.2f} s, start-up {started_s:.2f} s of it")
    beyond_s = (sweep_s - alone_s - started_s) / len(trials)
    print(f"  overhead per trial         {beyond_s:7.3f} s (aim: below 0.3 s)")
    often_s = (sweep_s - alone_s - again_s) / len(trials)
    print(f"  less what a sweep has once {often_s:7.3f} s")


def gang_s(tasks: Iterable[Mapping[str, list[str]]], env: Mapping[str, str]) -> float:
    """Seconds that the tasks of a trial take if they are simply started."""
    began = time.perf_counter()
    gang = [subprocess.Popen(task["argv"], env=env, stdout=subprocess.DEVNULL) for task in tasks]
    statuses = [task.wait() for task in gang]
    if any(statuses):
        sys.exit("a toy program failed")
    return time.perf_counter() - began


def reading(folder: Path) -> None:
    """Print how fast logs are collected on one core, beside two ways of reading them.

    DLPerf's own, which looks at no line behind the window; and the same over every line, which a
    reader needs that finds what is broken. By processor time, so that what else the machine does
    counts less.
    """
    size = sum(generated(folder))
    argv = (PROGRAM, "collect", "--logs", str(folder), "--workload", "ngc_pytorch_rn50", "--json")
    with on_one_core():
        before = os.times()
        done = subprocess.run(argv, capture_output=True, check=True)
        between = os.times()
        theirs = {str(path.relative_to(folder)): dlperfs_way(path) for path in logs_in(folder)}
        stopped = os.times()
        for path in logs_in(folder):
            dlperfs_way(path, to_the_end=True)
        after = os.times()
        for path in logs_in(folder):
            with path.open("rb") as log:
                READ(iter(partial(log.read, 1 << 20), b""), None)
        read = os.times()
    all_s = lasting_s(argv)
    cases = json.loads(done.stdout)["cases"]
    ours = {trial["log"]: trial["throughput"] for case in cases for trial in case["trials"]}
    ours_s = between.children_user + between.children_system
    ours_s -= before.children_user + before.children_system
    theirs_s = stopped.user + stopped.system - between.user - between.system
    whole_s = after.user + after.system - stopped.user - stopped.system
    reader_s = read.user + read.system - after.user - after.system
    furthest = max(abs(ours[log] - value) for log, value in theirs.items())
    print(f"\n{len(theirs)} logs, {size / 1e6:.0f} MB, on one core, by processor time:")
    print(f"  collect, start to end      {speed(size, len(ours), ours_s)}")
    print(f"  the reader, with sha256    {speed(size, len(ours), reader_s)}")
    print(f"  DLPerf's way               {speed(size, len(theirs), theirs_s)}")
    print(f"  the same over every line   {speed(size, len(theirs), whole_s)}")
    print("  beside every line (aim: collect on all cores 1):")
    print(f"    collect, reader          {whole_s / ours_s:7.2f} {whole_s / reader_s:7.2f}")
    print(f"    collect on all cores     {whole_s / all_s:7.2f}, by the clock on the wall")
    print(f"  beside DLPerf's way        {theirs_s / ours_s:7.2f} {theirs_s / reader_s:7.2f}")
    print(f"  throughputs differ by      {furthest:9.4f} at most; DLPerf rounds to 0.01")


def speed(size: int, logs: int, seconds: float) -> str:
    """A rate in words."""
    return f"{size / 1e6 / seconds:7.1f} MB/s {logs / seconds:7.0f} trials/s {seconds:7.2f} s"


def dlperfs_way(path: Path, *, to_the_end: bool = False) -> float:
    """Throughput from the 20th to the 120th line whose iteration is above 5.

    Source: DLPerf's extract_pytorch_logs_time.py, written anew: it reads all lines of a file and
    leaves them behind the 120th.
    """
    nodes, gpus = map(int, re.findall(r"\d+", path.parent.name))
    batch = int(path.name.split("_")[1].removeprefix("b")) * nodes * gpus
    counted, ends = 0, []
    with path.open() as log:
        for line in log.readlines():
            if "Iteration: " not in line:
                continue
            if int(re.findall(r"Iteration: (.*)  train.loss :", line)[0]) <= 5:
                continue
            counted += 1
            if counted in (20, 120):
                stamp = re.findall(r"DLL (.*) - Epoch", line)[0]
                ends.append(datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S.%f"))
            if counted == 120 and not to_the_end:
                break
    return round(batch / ((ends[1] - ends[0]).total_seconds() / 100), 2)


def memory(path: Path) -> None:
    """Print the peak of `inspect log` on a small and on a large log, which is not kept."""
    print("\npeak resident memory of `inspect log`:")
    for size in (10_000_000, 1_000_000_000):
        with path.open("wb") as log:
            log.writelines(lines("4n8g", Random(size), size // LINE_BYTES))
        argv = (PROGRAM, "inspect", "log", str(path), "--workload", "ngc_pytorch_rn50")
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        megabytes = path.stat().st_size / 1e6
        path.unlink()
        rate = f"{megabytes / (used.ru_utime + used.ru_stime):.1f} MB/s"
        said = f"{used.ru_maxrss / 1024:7.0f} MiB, {rate}, exit {process.returncode}"
        print(f"  {megabytes:6.0f} MB of log           {said}")


def generated(folder: Path) -> Iterator[int]:
    """Write the logs, named and placed as DLPerf does it; sizes in bytes."""
    for repeat in range(1, LOGS // len(RATES) + 1):
        for token in RATES:
            path = folder / "amp_ngc" / "pytorch" / token / f"r50_b{BATCH}_amp_{repeat}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            yield path.write_bytes(b"".join(lines(token, Random(f"{token} {repeat}"), STEPS)))


def logs_in(folder: Path) -> list[Path]:
    """The logs that were generated."""
    return sorted(folder.rglob("*.log"))


def lines(token: str, chance: Random, steps: int) -> Iterator[bytes]:
    """A log of NVIDIA's program, whose steps take 2 % more or less time than usual."""
    nodes, gpus = map(int, re.findall(r"\d+", token))
    samples = nodes * gpus * BATCH
    clock = datetime(2020, 9, 15) + timedelta(seconds=chance.randrange(10**6), microseconds=1)
    header = HEADER.format(began=clock, batch=BATCH, prof=steps + 1, world=nodes * gpus)
    yield header.encode()
    for iteration in range(1, steps + 1):
        rate = RATES[token] * chance.uniform(0.98, 1.02)
        clock += timedelta(seconds=samples / rate)
        said = f"train.loss : {chance.uniform(6, 7):.5f}  train.total_ips : {rate:.2f} img/s"
        when = clock.isoformat(" ", "microseconds")
        yield f"DLL {when} - Epoch: 0 Iteration: {iteration}  {said}\n".encode()


def lasting_s(
    argv: Iterable[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> float:
    """Seconds that a command takes, which must end well."""
    began = time.perf_counter()
    subprocess.run([*argv], cwd=cwd, env=env, capture_output=True, check=True)
    return time.perf_counter() - began


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process, and what it starts, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    main()
