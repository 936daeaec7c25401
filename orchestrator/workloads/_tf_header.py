"""What a log of NVIDIA's TensorFlow ResNet-50 says before its steps, and what that promises.

Newer programs print their parameters in one line, and all print a few counts one by one.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from orchestrator.workloads import _tf_line
from orchestrator.workloads._dll_notes import Notes

Value = str | int | float | bool

UNSHOWN = 20
"""Steps at the beginning that mode train never prints. Source: utils/hooks/training_hooks.py."""
_NEEDED = ("micro_batch_size", "world_size", "iterations")


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise ValueError("a whole number")
    return int(text)


def _positive(text: str) -> int:
    if _whole(text) < 1:
        raise ValueError("a positive number")
    return int(text)


def _number(text: str) -> float:
    if not re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", text):
        raise ValueError("a number")
    return float(text)


def _word(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,80}", text, re.ASCII):
        raise ValueError("one word")
    return text


def _flag(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError("True or False")
    return text == "True"


def _is_given(text: str) -> bool:
    return text != "None"


# Flags lost the ``use_`` of their names in 2021, and --amp and --static_loss_scale took the place
# of --use_tf_amp and --loss_scale.
_PARAMETERS: Mapping[str, tuple[str, Callable[[str], Value]]] = {
    "arch": ("arch", _word),
    "mode": ("mode", _word),
    "batch_size": ("micro_batch_size", _positive),
    "num_iter": ("num_iter", _positive),
    "run_iter": ("run_iter", _whole),
    "iter_unit": ("iter_unit", _word),
    "warmup_steps": ("warmup_steps", _whole),
    "display_every": ("display_every", _positive),
    "data_format": ("data_format", _word),
    "data_dir": ("has_data", _is_given),
    "data_idx_dir": ("has_index", _is_given),
    "precision": ("arithmetic", _word),
    "use_tf_amp": ("amp", _flag),
    "amp": ("amp", _flag),
    "use_xla": ("xla", _flag),
    "xla": ("xla", _flag),
    "use_dali": ("dali", _flag),
    "dali": ("dali", _flag),
    "use_static_loss_scaling": ("is_static", _flag),
    "loss_scale": ("scale", _number),
    "static_loss_scale": ("scale", _number),
}
_AS_SAID = ("arch", "mode", "micro_batch_size", "world_size", "data_format", "xla")


class Header:
    """The header of one run, line by line."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._said: dict[str, Value] = {}
        self._unsure: set[str] = set()
        self.has_parameters = False

    def add(self, line: int, parameters: Iterable[tuple[str, str]]) -> None:
        """Take the line of parameters; what does not read or agree is noted and given up."""
        self.has_parameters = True
        for key, text in parameters:
            name, read = _PARAMETERS.get(key, ("", _word))
            if not name or text == "" or (text == "None" and read is not _is_given):
                continue
            try:
                self.tell(line, name, read(text))
            except ValueError as needed:
                seen = f"line {line}: header: {key} : {text[:40]}; {needed} was needed"
                self._notes.add("MALFORMED", seen, sort=key)
                self._unsure.add(name)

    def tell(self, line: int, name: str, value: Value) -> None:
        """Take one value, under the project's name."""
        if self._said.setdefault(name, value) != value:
            self._unsure.add(name)
            seen = f"line {line}: header: {name} {value} against {self._said[name]}"
            self._notes.add("MIXED-CONFIG", seen, sort=name)

    def told(self, name: str) -> Value | None:
        """What was said without contradiction under a name of ours."""
        return None if name in self._unsure else self._said.get(name)

    @property
    def begun(self) -> bool:
        return bool(self._said or self._unsure)

    @property
    def tells(self) -> frozenset[str]:
        """What every whole header of this sort says; NVLOG's lacks the precision.

        Without a header nothing is told: the recorded logs of 32 ranks under mpirun have none.
        """
        if not self.begun:
            return frozenset()
        counts = frozenset({"micro_batch_size", "world_size"})
        return counts | {"precision"} if self.has_parameters else counts

    @property
    def lacks(self) -> tuple[str, ...]:
        """Which of the numbers that a log needs nobody has tried to say."""
        tried = {*self._said, *self._unsure}
        if tried & {"num_iter", "total_steps"}:
            tried.add("iterations")
        return tuple(name for name in _NEEDED if name not in tried)

    def config(self) -> dict[str, Value]:
        """What the header says, with precision, loss scale and data drawn from the flags."""
        found: dict[str, Value | None] = {name: self.told(name) for name in _AS_SAID}
        found["iterations"] = self._iterations
        found["precision"] = self._precision
        found["loss_scale"] = self._loss_scale
        found["dali"] = self._dali
        has_data = self.told("has_data")
        if has_data is not None:
            found["data"] = "tfrecord" if has_data else "synthetic"
        if found["mode"] != "train":  # where it has no effect, and differs between scripts
            found["warmup_steps"] = self.told("warmup_steps")
        return {name: value for name, value in found.items() if value is not None}

    def begins(self, metric: str | None) -> int | None:
        """The first step that is shown, by the program's count from 0; None if unknown."""
        unshown, every = self.told("warmup_steps"), self.told("display_every")
        if not self._is_benchmark(metric):
            unshown = UNSHOWN
        if not isinstance(unshown, int) or not isinstance(every, int):
            return None
        return -(-unshown // every) * every

    def promised(self, metric: str | None, first: int | None, stride: int) -> int | None:
        """Step lines that the header promises; None where it promises nothing.

        A run of N steps counts from 0 to N - 1; what mode train prints may be one more than that.

        Args:
            first: the first step line's number; None without one.
        """
        total, begins = self._iterations, self.begins(metric)
        run_iter = self.told("run_iter")
        if isinstance(total, int) and isinstance(run_iter, int) and run_iter > 0:
            total = min(total, run_iter)
        if not isinstance(total, int):
            return None
        if first is None:
            first = begins or 0
        last = total - 1
        if metric == _tf_line.TRAINING and begins is not None and first == begins + 1:
            last = total
        return max((last - first) // stride + 1, 0)

    def _is_benchmark(self, metric: str | None) -> bool:
        if metric is None:
            return self.told("mode") != "train"
        return metric == _tf_line.BENCHMARK

    @property
    def _iterations(self) -> Value | None:
        if self.told("iter_unit") == "batch":
            return self.told("num_iter")
        return self.told("total_steps")

    @property
    def _precision(self) -> Value | None:
        """amp by either way: TensorFlow's rewriting of the graph, or half precision outright."""
        if self._unsure & {"amp", "arithmetic"}:
            return None
        amp, arithmetic = self._said.get("amp"), self._said.get("arithmetic")
        if amp or arithmetic == "fp16":
            return "amp"
        return None if amp is None else "fp32"

    @property
    def _dali(self) -> Value | None:
        """Whether DALI feeds the program, which without an index leaves it out."""
        asked, has_index = self.told("dali"), self.told("has_index")
        if asked is False:
            return False
        return has_index if asked else None

    @property
    def _loss_scale(self) -> Value | None:
        is_static = self.told("is_static")
        if self._precision != "amp" or is_static is None:
            return None
        return self.told("scale") if is_static else "dynamic"
