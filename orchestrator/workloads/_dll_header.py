"""The header of a DLLogger log, one or two PARAMETER lines, and its Summary."""

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite

from orchestrator.workloads import _dll_line
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes

Value = str | int | float | bool


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise ValueError("a whole number")
    return int(text)


def _count(text: str) -> int:
    if _whole(text) < 1:
        raise ValueError("a positive number")
    return int(text)


def _scale(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,15})?", text):
        raise ValueError("a number")
    return float(text)


def _word(text: str) -> str:
    if "  " in text or " :" in text:
        raise ValueError("one value")
    return text


def _flag(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError("True or False")
    return text == "True"


_HEADER: Mapping[str, tuple[str, Callable[[str], Value]]] = {
    "batch_size": ("micro_batch_size", _count),
    "world_size": ("world_size", _count),
    "prof": ("iterations", _whole),
    "epochs": ("epochs", _whole),
    "run_epochs": ("run_epochs", _whole),
    "arch": ("arch", _word),
    "num_classes": ("num_classes", _count),
    "model.num_classes": ("num_classes", _count),
    "data": ("data", _word),
    "data_backend": ("data_backend", _word),
    "optimizer_batch_size": ("optimizer_batch_size", _whole),
    "memory_format": ("memory_format", _word),
    "image_size": ("image_size", _count),
    "accumulation_steps": ("accumulation_steps", _count),
    "device": ("device", _word),
    "amp": ("amp", _flag),
    "fp16": ("fp16", _flag),
    "static_loss_scale": ("static_loss_scale", _scale),
    "dynamic_loss_scale": ("dynamic_loss_scale", _flag),
}
_RAW = ("epochs", "run_epochs", "amp", "fp16", "static_loss_scale", "dynamic_loss_scale")


def items(line: bytes) -> list[tuple[str, str]]:
    """Names and values of a PARAMETER line; an empty value, as ``pretrained_weights :``, stays."""
    _, _, said = line.decode("utf-8", "backslashreplace").partition(" PARAMETER")
    words = re.split(r" ([A-Za-z_][A-Za-z0-9_.]*) : ", said)
    return [(name, value.strip()) for name, value in zip(words[1::2], words[2::2], strict=True)]


class Header:
    """The PARAMETER lines of one run: one until 2021, then two."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._said: dict[str, Value] = {}
        self._unsure: set[str] = set()
        self.keys: set[str] = set()

    def add(self, line: int, said: Iterable[tuple[str, str]]) -> None:
        """Take what line ``line`` says; what does not read or agree is noted and given up."""
        for key, text in said:
            self.keys.add(key)
            if key not in _HEADER or text in ("", "None"):
                continue
            name, read = _HEADER[key]
            try:
                value = read(text)
            except ValueError as needed:
                seen = f"line {line}: header: {key} : {text[:40]}; {needed} was needed"
                self._notes.add("MALFORMED", seen, sort=key)
                self._unsure.add(name)
                continue
            if self._said.setdefault(name, value) != value:
                self._unsure.add(name)
                seen = f"line {line}: header: {key} : {text[:40]} against {self._said[name]}"
                self._notes.add("MIXED-CONFIG", seen, sort=name)

    def config(self) -> dict[str, Value]:
        """What the lines agree on, with ``precision`` and ``loss_scale`` drawn from the flags."""
        said = {key: it for key, it in self._said.items() if key not in self._unsure}
        config = {name: value for name, value in said.items() if name not in _RAW}
        flags = [said[name] for name in ("amp", "fp16") if name in said]
        if flags and not {"amp", "fp16"} & self._unsure:
            config["precision"] = "amp" if any(flags) else "fp32"
        if said.get("dynamic_loss_scale"):
            config["loss_scale"] = "dynamic"
        elif (
            config.get("precision") == "amp"
            and "static_loss_scale" in said
            and "dynamic_loss_scale" not in self._unsure
        ):
            config["loss_scale"] = said["static_loss_scale"]
        return config

    def promised(self, first: Step, epochs: int, stride: int) -> int | None:
        """Step lines that the header promises; None where it promises nothing.

        Of ``--prof N`` the program runs iterations 1 to N - 1, in each epoch.
        """
        prof, last, most = (self._number(name) for name in ("iterations", "epochs", "run_epochs"))
        if prof < 2:
            return None
        asked = last - first.epoch
        whole = max(epochs, min(asked, most) if most > 0 else asked)
        begin = min(max(first.number, 1), stride)
        return max((prof - 1 - begin) // stride + 1, 0) * whole

    def _number(self, name: str) -> int:
        value = self._said.get(name)
        return value if isinstance(value, int) and name not in self._unsure else -1


def summary(line: bytes) -> dict[str, float]:
    """The finite numbers of a Summary line, by name."""
    found = re.findall(rb" ([A-Za-z_][\w.]*) : (" + _dll_line.NUMBER + rb")(?=\s|$)", line)
    named = {name.decode("ascii").replace(".", "_"): float(value) for name, value in found}
    if "train_total_ips" in named:
        named["train_throughput"] = named.pop("train_total_ips")
    return {name: value for name, value in named.items() if isfinite(value)}
