"""What one line of a DLLogger log is: a step, the header, the summary, a broken record, or nothing.

Source: DLLogger's StdOutBackend and DeepLearningExamples' image_classification/logger.py; the
variants are those of the logs in PaddlePaddle/Perf, 2020 to 2023.
"""

import re
from typing import Literal, NamedTuple

LONGEST_RECORD = 64 * 1024
"""Bytes; what is longer is somebody else's text."""
NUMBER = rb"-?(?:\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,2})?|nan|inf)"

_STAMP = rb"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?)"  # str(datetime) drops .000000
_STEP = re.compile(
    rb"(?:\[\d{1,9},(?P<rank>\d{1,9})\]<std(?:out|err)>:)?DLL " + _STAMP + rb" - "
    rb"Epoch: (?P<epoch>\d{1,9}) Iteration: (?P<iteration>\d{1,15})"
    rb"(?: +[A-Za-z_][\w.]* : " + NUMBER + rb"(?: (?:None|s|im(?:g|ages)/s))?)*?"
    rb" +train\.total_ips : (?P<rate>" + NUMBER + rb") im(?:g|ages)/s"
)
_OTHER = re.compile(
    rb"DLL "
    + _STAMP
    + rb" - (?:(?P<header>PARAMETER) |(?P<summary>Summary): |Epoch: \d{1,9}  [a-z]"
    rb"|Epoch: \d{1,9} Iteration: \d{1,15} Validation Iteration: \d"
    rb"|(?!PARAM|Summ|Epoch|Iter)[A-Za-z])"
)
_LOST = re.compile(rb"train\.loss : -?(?:nan|inf)")
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")

Kind = Literal["header", "summary", "malformed", "nothing"]


class Step(NamedTuple):
    """A step as it was printed; ``rank`` is mpirun's tag, and empty without one."""

    rank: bytes
    stamp: bytes
    epoch: int
    number: int
    rate: float
    line: int

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and iteration."""
        return self.epoch, self.number

    def follows(self, before: "Step", stride: int) -> bool:
        """Whether this is what the writer of ``before`` prints next."""
        return (
            self.number == before.number + stride
            and self.epoch == before.epoch
            and self.rank == before.rank
            and self.stamp >= before.stamp  # as bytes they sort like the clock
        )


def plain(text: bytes) -> bytes:
    """The text without terminal control."""
    return _ANSI.sub(b"", text) if b"\x1b" in text else text


def match(line: bytes) -> re.Match[bytes] | None:
    """The fields of the one step in ``line``; None without one, or with another writer's text."""
    alone = line.count(b"DLL ") == 1 and line.count(b"Iteration:") == 1
    return _STEP.search(line) if alone else None


def step(line: bytes, number: int) -> Step | None:
    """The step in line ``number`` of the log, if it holds one."""
    found = match(line)
    if not found:
        return None
    rank, stamp, epoch, iteration, rate = found.group("rank", "stamp", "epoch", "iteration", "rate")
    return Step(rank or b"", stamp, int(epoch), int(iteration), float(rate), number)


def is_lost(line: bytes) -> bool:
    """Whether the loss in the line of a step is not finite."""
    return (b"nan" in line or b"inf" in line) and bool(_LOST.search(line))


def kind(line: bytes) -> Kind:
    """What a line is that is no step."""
    alone = line.count(b"DLL ") == 1 and len(line) <= LONGEST_RECORD
    other = _OTHER.search(line) if alone else None
    if other:
        kinds: dict[str | None, Kind] = {"header": "header", "summary": "summary"}
        return kinds.get(other.lastgroup, "nothing")
    return "malformed" if _is_suspect(line) else "nothing"


def _is_suspect(line: bytes) -> bool:
    """Whether ``line`` begins a record, or holds the middle of a step."""
    _, record, after = line.partition(b"DLL ")
    words = (b"Epoch: ", b"Iteration:", b"Summary: ", b"PARAMETER")
    if record and (re.search(rb"DLL \d", line) or any(word in after for word in words)):
        return True
    return b"train." in line.partition(b"Iteration:")[2]
