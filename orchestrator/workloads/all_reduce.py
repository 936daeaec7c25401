"""All-reduce of one buffer over all ranks: how fast the fabric is, without a training program."""

import re
from collections.abc import Iterator

from orchestrator import logs
from orchestrator.launchers import gang_env, torchrun
from orchestrator.logs import LOST, NUMBER, Format, Promise, Reader, Run, count, word
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement
from orchestrator.model.text import Count, Noun
from orchestrator.workloads import Published, Workload

LARGE_MIB = 8192


class Params(Noun):
    size_mib: Count = 1024
    """The buffer that is reduced, in MiB of float32."""


def _event(reader: Reader, line: bytes) -> bool:
    """Read the line of settings, with which a run begins."""
    if not line.startswith(b"all-reduce "):
        return False
    reader.open_header()
    for key, value in re.findall(r"(\w+)=(\S+)", line.decode("utf-8", "backslashreplace")):
        reader.run.header.add(key, value, reader.line)
    return True


def _promise(run: Run) -> Promise:
    """Return the steps to come, and the gigabytes that each moves as nccl-tests count them."""
    steps, sizes = run.header.number("iterations"), run.header.numbers("size_mib", "world_size")
    moved_gb = None
    if sizes:
        mib, ranks = sizes
        moved_gb = (mib << 20) * 2 * (ranks - 1) / ranks / 1e9
    tells = frozenset({"precision", "size_mib", "world_size"})
    return Promise(interval=1, least=steps, most=steps, batch=moved_gb, tells=tells)


FORMAT = Format(
    unit="GB/s",
    rule="rates",
    step=(
        rb"iteration=(?P<iteration>\d{1,15}) us=(?P<latency>\d{1,12}\.\d" + LOST + rb")"
        rb" busbw=(?P<rate>" + NUMBER + rb") GB/s"
    ),
    sealed=re.compile(rb"busbw=" + NUMBER + rb" GB/s"),
    marks=(b"iteration=", b"all-reduce "),
    alone=(b"iteration=",),
    lost=re.compile(rb"us=(?:" + LOST[1:] + rb")"),
    clock=None,
    latencies_a_second=10**6,
    digits=(1e-4, 1e-7),  # busbw=0.2115 us=317281.5
    window=(6, 25),
    header={
        "ranks": ("world_size", count),
        "size_mib": ("size_mib", count),
        "precision": ("precision", word),
        "iterations": ("iterations", count),
        "device": ("device", word),
    },
    headerless=("NO-HEADER", "no line of settings before the iterations"),
    event=_event,
    broken=re.compile(rb"iteration=").search,
    promise=_promise,
)


def command(case: Case, method: Method, placement: Placement) -> Command:
    size_mib = Params.model_validate(case.given).size_mib
    options = f"--device {case.device} --size-mib {size_mib} --iterations {method.iterations}"
    agent = (placement.python, "-m", "torch.distributed.run")
    return Command(agent, (f"{placement.code}/all_reduce.py", *options.split()))


def published(case: Case) -> Published | None:
    """Return the names of nccl-tests' bandwidths, published for buffers of 8 GiB and more."""
    if case.device != "cuda" or Params.model_validate(case.given).size_mib < LARGE_MIB:
        return None
    return Published(("nccl-tests",), "all_reduce", (case.precision,), "8-16 GiB")


def unsupported(case: Case, _method: Method) -> Iterator[str]:
    if case.world_size < 2:
        yield f"{case.placement}, which is one rank; needed two or more"
    if case.micro_batch_size != 1:
        yield f"micro_batch_size {case.micro_batch_size}; needed 1, one buffer"


WORKLOAD = Workload(
    name="all_reduce",
    title="All-reduce, bus bandwidth as nccl-tests define it",
    params=Params,
    unit="GB/s",
    launcher=torchrun,
    port=lambda _: 22333,
    command=command,
    env=gang_env,
    unsupported=unsupported,
    devices=frozenset({"cuda", "cpu"}),
    precisions=frozenset({"fp32"}),
    rules=frozenset({"rates"}),
    published=published,
    log_prefix="all_reduce",
    read=logs.reader(FORMAT),
    fabric=logs.fabric,
    progress=logs.progress(FORMAT),
)
