"""Sweeps that nobody forged, drawn at random: whatever happened in them, happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from orchestrator.model.case import Case
from orchestrator.model.experiment import Method, Repeats
from tests.collecting import oneflow_logs
from tests.collecting.pytorch_logs import Run
from tests.verifying.observers import Seen
from tests.verifying.sweeps import NCCL, Recorded, case

SOCKET = "vs1:1:1 [0] NCCL INFO Using network Socket\n"
FOREIGN = (
    *("vs1:33:33 [0] NCCL INFO Channel 00 : 0 1\n", "warning: step: 4 of nothing\n", "|  |\n"),
    *(" Iteration: \n", "train: epoch 0, iter 7\n", "samples/s: 5\n", "batch_size : 8\n"),
    *(
        "iteration: 5\n",
        "100 %, 40 MiB\n",
        "imgs_per_sec\n",
        ", throughput: 5\n",
        f"{'x' * 70000}\n",
    ),
)
BEFORE = ("infra-lost", "failed", "interrupted", "lost", "open")
STATES = (8, 2, 1, 1, 1)


@dataclass(frozen=True)
class Torn(Seen):
    """An observer that was killed, on a node of few processors.

    Args:
        kept: bytes of its two files.
    """

    kept: tuple[int, int] = (0, 0)
    cpus: str = "8"

    def state(self) -> str:
        """Cut short."""
        return super().state().replace(",8,100\n", f",{self.cpus},100\n", 1)[: self.kept[0]]

    def gpus(self) -> str:
        """Cut short."""
        return super().gpus()[: self.kept[1]]


def drawn(chance: Random) -> Recorded:
    """A sweep of one of three programs, by one of several methods."""
    name = chance.choice(["ngc_pytorch_rn50", "ngc_pytorch_rn50", "oneflow_rn50", "oneflow_bert"])
    repeats = chance.choice([1, 2, 5, 8])
    cases = [
        case(token, *_SETTINGS[name]) for token in chance.sample(_TOKENS, chance.randint(1, 4))
    ]
    logs = {it: _texts(chance, name, it, repeats) for it in cases}
    trials = [(it, repeat) for it in cases for repeat in range(1, repeats + 1)]
    names = [f"{it.token}-r50_b{it.micro_batch_size}_{it.precision}_{n}" for it, n in trials]
    canary = {cases[0]: _texts(chance, name, cases[0], 3)} if chance.random() < 0.4 else {}
    found = Recorded(name, _method(chance, name, repeats), logs, chance.choice(["", "=mlx5_0"]))
    return replace(
        found,
        nodes={
            one: f"vs{chance.randint(1, 4)}"
            for one, (it, _) in zip(names, trials, strict=True)
            if it.nodes == 1
        },
        seen={
            one: _seen(chance, it, n)
            for one, (it, n) in zip(names, trials, strict=True)
            if chance.random() < 0.6
        },
        beside={one: [chance.choice(names)] for one in names if chance.random() < 0.2},
        before={
            one: chance.choices(BEFORE, STATES, k=chance.randint(1, 2))
            for one in names
            if chance.random() < 0.2
        },
        canary=canary,
        kernels={one: "6.1" for one in names if chance.random() < 0.1},
    )


_TOKENS = ("1n1g", "1n2g", "1n8g", "2n1g", "2n8g", "4n8g")
_SETTINGS = {
    "ngc_pytorch_rn50": (256, "amp"),
    "oneflow_rn50": (128, "fp32"),
    "oneflow_bert": (96, "fp32"),
}


def _method(chance: Random, name: str, repeats: int) -> Method:
    iterations, *windows = {
        "ngc_pytorch_rn50": (151, (25, 125), (1, 100)),
        "oneflow_rn50": (120, (20, 120), (40, 100)),
        "oneflow_bert": (140, (19, 119), (39, 99)),
    }[name]
    until = Repeats(min=3, max=8, until_interval=chance.choice(["0.5%", "5%"]))
    return Method.model_validate(
        {
            "repeats": until if repeats == 8 and chance.random() < 0.5 else repeats,
            "iterations": iterations,
            "window": chance.choice([*windows, None]),
            "rule": chance.choice([None, None, "rates"]),
        }
    )


def _texts(chance: Random, name: str, of: Case, repeats: int) -> Sequence[str]:
    """A log for each trial; none of one that has not been run."""
    rate, damaged = of.world_size * chance.uniform(300, 900), chance.choice([0, 0, 0.4])
    texts = []
    for repeat in range(repeats):
        here = (
            rate
            * chance.gauss(1, chance.choice([0.002, 0.02]))
            * (1.3 if chance.random() < 0.05 else 1)
        )
        text = chance.choice([NCCL, NCCL, NCCL, SOCKET]) * (of.nodes > 1)
        text += _log(name, of, here, _began(of, repeat, chance.random()))
        text = _damaged(chance, text) if chance.random() < damaged else text
        texts.append("" if chance.random() < 0.06 else text)
    return texts


def _began(of: Case, repeat: int, more: float = 0.0) -> datetime:
    return datetime(2020, 9, 15, 14, 28, 53) + timedelta(
        hours=of.world_size, minutes=9 * repeat + more
    )


def _log(name: str, of: Case, rate: float, began: datetime) -> str:
    if name == "ngc_pytorch_rn50":
        return Run(of.world_size, rate, began, of.micro_batch_size).log()
    written = oneflow_logs.rn50 if name == "oneflow_rn50" else oneflow_logs.bert
    return written(of.token, rate, began.timestamp())


def _damaged(chance: Random, text: str) -> str:
    """A log to which one thing happened: a line or a digit, NULs, a second run, another program."""
    lines = text.splitlines(keepends=True)
    at, other, letter = (
        chance.randrange(len(lines)),
        chance.randrange(len(lines)),
        chance.randrange(len(text)),
    )
    digit = chance.choice([place for place, it in enumerate(text) if it.isdigit()])
    ways: Mapping[str, str] = {
        "cut": text[:letter],
        "without its end": text.rstrip("\n"),
        "without a beginning": "".join(lines[at:]),
        "lines gone": "".join(lines[:at] + lines[max(at, other) :]),
        "a line twice": "".join([*lines[:at], lines[at], *lines[at:]]),
        "a line elsewhere": "".join([*lines[:at], lines[other], *lines[at + 1 :]]),
        "half a line": "".join([*lines[:at], lines[at][: letter % len(lines[at])], *lines[at:]]),
        "a foreign line": "".join([*lines[:at], chance.choice(FOREIGN), *lines[at:]]),
        "another digit": f"{text[:digit]}{chance.randrange(10)}{text[digit + 1 :]}",
        "another letter": f"{text[:letter]}{chr(chance.randrange(1, 255))}{text[letter + 1 :]}",
        "no number": f"{text[:digit]}nan{text[digit + 1 :]}",
        "NULs": f"{text[:letter]}\0\0\0{text[letter:]}",
        "ends of Windows": text.replace("\n", "\r\n"),
        "two runs": text + text,
        "tagged": "".join(f"[1,0]<stdout>:{line}" for line in lines),
        "another epoch": text.replace("Epoch: 0", "Epoch: 1", at),
    }
    return ways[chance.choice([*ways])]


def _seen(chance: Random, of: Case, repeat: int) -> Seen:
    went_at = _began(of, repeat - 1).replace(tzinfo=UTC).timestamp() - chance.choice([4, 0.5, 300])
    seen = Torn(
        went_at,
        chance.choice([0, 1, 3, 30, 200]),
        others=chance.choice([0.02, 1.5]),
        steal=chance.choice([0, 0.05]),
        hot=chance.choice([None, 0, 10]),
        alien=chance.choice([0, 1.25]),
        counter=chance.random() < 0.5,
        kept=(1 << 20, 1 << 20),
        cpus=chance.choice(["8", "8", "8", "1", "0.5"]),
    )
    kept = (chance.randrange(len(seen.state()) + 1), chance.randrange(len(seen.gpus()) + 1))
    return replace(seen, kept=kept) if chance.random() < 0.2 else seen
