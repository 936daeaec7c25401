"""What one line of NVIDIA's TensorFlow ResNet-50 is, in the words of either of its loggers.

DLLogger prints a step in one line, ``(epoch, step) total_ips : 408.3``, and the step counts on
over all epochs. NVLOG, up to 2020, prints an iteration and then its rate in a line of its own.

Source: DeepLearningExamples, TensorFlow/Classification/ConvNets: runtime/runner.py and utils/hooks;
the variants are those of the logs in PaddlePaddle/Perf, 2020 to 2022.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from orchestrator.workloads._dll_line import LONGEST_RECORD, NUMBER

TRAINING = "imgs_per_sec"
"""What mode train calls the rate of a step."""
BENCHMARK = "total_ips"
"""What the benchmark modes call it."""

_RANK = rb"(?:\[\d{1,9},(?P<rank>\d{1,9})\]<std(?:out|err)>:)?"
_STAMP = rb"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?)"
_RATE = rb"(?P<metric>imgs_per_sec|total_ips) ?: (?P<rate>" + NUMBER + rb")(?=\s|$)"
_DLL_STEP = re.compile(
    _RANK + rb"DLL " + _STAMP + rb" - \(\d{1,9}, (?P<number>\d{1,15})\) " + _RATE
)
_DLL_OTHER = re.compile(
    rb"DLL "
    + _STAMP
    + rb" - (?:(?P<header>PARAMETER) |(?P<result>\(\)) [A-Za-z_]|\(\d{1,9},\) [A-Za-z_]"
    rb"|(?!PARAM)[A-Za-z])"
)
_NVLOG = re.compile(
    _RANK + rb":::NVLOGv\d[\w.]{0,20} \S{1,80} (?P<whole>\d{1,10})\.(?P<part>\d{6,9})"
    rb" \([\w.]{1,80}:\d{1,9}\) (?:iteration: (?P<number>\d{1,15})\s*$"
    rb"|" + _RATE + rb"\s*$|Average total_ips: (?P<average>" + NUMBER + rb")\s*$"
    rb"|(?!iteration|imgs_per_sec|total_ips|Average total)(?P<text>.*))"
)
_LOST = re.compile(rb"(?:cross_entropy|l2_loss|total_loss) ?: -?(?:nan|inf)")
_COUNTS: Mapping[bytes, str] = {
    b"Num GPUs": "world_size",
    b"Per-GPU Batch Size": "micro_batch_size",
    b"Total Steps": "total_steps",
}
_COUNT = re.compile(
    rb"(?:.{0,80}<std(?:out|err)>:)?(?::::NVLOG\S{1,20} \S{1,80} [\d.]{1,30} \(\S{1,90}\) )?"
    rb"(?P<name>Num GPUs|Per-GPU Batch Size|Total Steps):? (?P<value>\d{1,15})(?:\.0)?\s*$"
)

Kind = Literal["header", "result", "malformed", "nothing"]


class Printed(NamedTuple):
    """A step as it was printed; ``rank`` is mpirun's tag, and empty without one."""

    rank: bytes
    stamp: bytes
    number: int
    metric: str
    rate: float


class Part(NamedTuple):
    """What NVLOG prints in one line of its own; all that the line does not say is None.

    Args:
        stamp: date and time in UTC.
        average: the program's own result, at its end.
    """

    rank: bytes
    stamp: bytes
    number: int | None
    metric: str | None
    rate: float | None
    average: float | None


def whole_step(line: bytes) -> Printed | None:
    """The step that DLLogger prints in ``line``; None without one, or with another's text in it."""
    found = _DLL_STEP.search(line) if line.count(b"DLL ") == 1 else None
    if not found:
        return None
    rank, stamp, number, metric, rate = found.group("rank", "stamp", "number", "metric", "rate")
    return Printed(rank or b"", stamp, int(number), metric.decode(), float(rate))


def part(line: bytes) -> Part | None:
    """What NVLOG prints in ``line``; None for a line that is not as NVLOG would write it."""
    found = _NVLOG.search(line) if line.count(b":::NVLOG") == 1 else None
    if not found or len(line) > LONGEST_RECORD:
        return None
    second = datetime.fromtimestamp(int(found["whole"]), UTC)
    stamp = b"%s.%s" % (f"{second:%Y-%m-%d %H:%M:%S}".encode(), found["part"])
    number, metric, rate, average = found.group("number", "metric", "rate", "average")
    return Part(
        found["rank"] or b"",
        stamp,
        int(number) if number else None,
        metric.decode() if metric else None,
        float(rate) if rate else None,
        float(average) if average else None,
    )


def is_whole(line: bytes) -> bool:
    """Whether a line that no line feed ends holds a step or a result that cannot go on.

    The number is whole as soon as something follows it.
    """
    found = _DLL_STEP.search(line)
    if found:
        return found.end("rate") < len(line)
    return kind(line) == "result" and re.search(rb"\(\) \w+ : \S+\s[^:]*$", line) is not None


def is_lost(line: bytes) -> bool:
    """Whether a loss in this line is not finite."""
    return (b"nan" in line or b"inf" in line) and bool(_LOST.search(line))


def kind(line: bytes) -> Kind:
    """What a line is that holds DLLogger's name and no step."""
    alone = line.count(b"DLL ") == 1 and len(line) <= LONGEST_RECORD
    other = _DLL_OTHER.search(line) if alone else None
    if other:
        if other["header"]:
            return "header"
        return "result" if other["result"] else "nothing"
    return "malformed" if is_suspect(line) else "nothing"


def is_suspect(line: bytes) -> bool:
    """Whether ``line`` begins a record, or holds the middle of a step."""
    if b"DLLL {" in line:  # the lines of the program's own log.json
        return False
    words = (b"PARAMETER ", b"train_throughput", b"imgs_per_sec :", b"total_ips :", b"total_ips:")
    return bool(re.search(rb"DLL \d", line)) or any(word in line for word in words)


def count(line: bytes) -> tuple[str, int] | None:
    """Name and value of a line such as ``Num GPUs 8``, under the project's names."""
    found = _COUNT.match(line)
    return (_COUNTS[found["name"]], int(found["value"])) if found else None
