"""Readers of the logs of OneFlow's ResNet-50 and BERT: a header, then a line every 20 iterations.

Since 21 August 2020 such a line ends with the time at which it was printed.
Source: DLPerf, extract_cnn_result.py, extract_bert_result.py and extract_util.py.
"""

from collections.abc import Iterable
from math import isfinite, prod

from orchestrator.model.log import TrainingLog
from orchestrator.workloads import _lines, _nccl, _oneflow_line
from orchestrator.workloads._arguments import Arguments, Value
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._lines import Line, Lines
from orchestrator.workloads._oneflow_line import BERT, RN50, Format
from orchestrator.workloads._oneflow_run import Run, Step, Window
from orchestrator.workloads._order import Promise

TELLS = frozenset({"micro_batch_size", "world_size"})
"""What every header says; whether it speaks of float16 depends on the version."""

_RAW = ("use_fp16", "dtype", "train_data_dir")


class _Reader:
    """A log that is being read, from its first line to its last."""

    def __init__(self, form: Format, window: tuple[int, int]) -> None:
        self._form = form
        self._window = window
        self._notes = Notes()
        self._run = self._another()
        self._runs_before = 0
        self._libraries = _nccl.Listener()

    def _another(self) -> Run:
        return Run(self._window, self._form.base, self._form.header, self._notes)

    def see(self, line: Line) -> None:
        """Read one line; of the last one, if nothing ends it, it cannot be known what is missing.

        The time at a record's end would still look like one with a few digits less.
        """
        step = self._form.step(line.text, line.number)
        if not line.whole:
            if step or self._form.is_broken(line.text):
                seen = f"the log ends in the middle of a record, in line {line.number}"
                self._notes.add("TRUNCATED", seen, sort="record")
            return
        if _nccl.concerns(line.text):
            self._libraries.hear(line.text, line.number)
        if step:
            self._step(step)
        elif self._form.is_broken(line.text):
            seen = f"line {line.number} begins or ends as a record but does not match"
            self._run.damage(seen)
        elif said := _oneflow_line.argument(line.text):
            self._argument(*said, line.number)
        elif kind := _oneflow_line.loaded(line.text):
            self._run.loaded.add(kind)

    def _argument(self, key: str, value: str, line: int) -> None:
        if key not in self._form.header:
            return
        if self._run.order.steps or key in self._run.header.keys:
            self._restart(f"line {line}: another header")
        self._run.header.add(key, value, line)

    def _step(self, step: Step) -> None:
        relation = self._run.order.relation(step.place)
        if relation == "again":
            self._run.repeat(step)
            return
        if relation == "back":
            epoch, number = step.place
            seen = f"line {step.line}: iteration {number} of epoch {epoch}"
            self._restart(f"{seen} after {self._run.order.where}")
        self._run.add(step)
        if _oneflow_line.is_lost(step):
            seen = f"line {step.line}: iteration {step.place.number}: the loss is not finite"
            self._notes.add("LOSS-NOT-FINITE", seen)

    def _restart(self, seen: str) -> None:
        self._notes.add("SEVERAL-RUNS", seen)
        self._run.close()
        self._runs_before += 1
        self._run = self._another()

    def close(self) -> None:
        """Note what only the whole log shows."""
        run, notes = self._run, self._notes
        run.close()
        if not run.header.keys:
            notes.add("NO-HEADER", "no line of the arguments before the steps")
        if not run.order.steps:
            notes.add("NO-STEPS", "no line of an iteration")
        run.order.judge(_promise(run.header))

    def log(self, lines: Lines) -> TrainingLog:
        """What has been read."""
        run, first, last = self._run, self._run.order.first, self._run.order.last
        runs = self._runs_before + run.has_begun
        only = run.window if runs == 1 else Window(self._window, self._notes)
        only.judge()
        return TrainingLog(
            runs=runs,
            steps=run.order.steps,
            first_iteration=first.number if first else None,
            last_iteration=last.number if last else None,
            config=_config(run),
            start=only.start,
            end=only.end,
            rate=run.order.rate,
            window_rate=only.rate,
            unit=self._form.unit,
            reported={},
            digest=only.digest,
            size_bytes=lines.size_bytes,
            sha256=lines.sha256,
            fabric=self._libraries.fabric(),
            problems=self._notes.problems(),
            window=self._window,
            window_mean=only.mean,
            tells=TELLS,
        )


def _promise(header: Arguments) -> Promise:
    """The steps that a header promises.

    ResNet-50's epoch is a number of images; whether a last batch that they do not fill is
    trained differs between versions.
    """
    interval = header.number("print_every")
    iterations, epochs = header.number("iterations"), header.number("num_epochs")
    said = header.numbers("num_examples", "micro_batch_size", "nodes", "gpus_per_node")
    if said is None:
        return Promise(interval, iterations, iterations, epochs)
    images, *batch = said
    return Promise(interval, images // prod(batch), -(-images // prod(batch)), epochs)


def _config(run: Run) -> dict[str, Value]:
    """What the header says, with what follows from it."""
    header, promise = run.header, _promise(run.header)
    config = {name: value for name, value in header.said.items() if name not in _RAW}
    if said := header.numbers("nodes", "gpus_per_node"):
        config["world_size"] = prod(said)
    if promise.least is not None and promise.least == promise.most:
        config["iterations"] = promise.least
    if precision := _precision(header):
        config["precision"] = precision
    if (xla := header.is_on("use_xla")) is not None:
        config["xla"] = xla
    if data := _data(run):
        config["data"] = data
    if data == "synthetic":
        config.pop("data_part_num", None)  # a default that nobody asked for, of files not read
    return config


def _precision(header: Arguments) -> str | None:
    """Precision by the switches; None where they leave it open, or ask for float16 throughout."""
    amp, dtype = header.is_on("use_fp16"), header.said.get("dtype", "float32")
    if amp is None and "dtype" not in header.said:
        return None
    if dtype != "float32":
        return None
    return "amp" if amp else "fp32"


def _data(run: Run) -> str | None:
    """Kind of the training data.

    Where no validation data are given, the program says of them too that they are synthetic.
    """
    if "train_data_dir" in run.header.keys:
        return "ofrecord" if "train_data_dir" in run.header.said else "synthetic"
    return next(iter(run.loaded)) if len(run.loaded) == 1 else None


def _read(form: Format, chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
    reader = _Reader(form, window or form.window)
    lines = Lines(chunks, lambda text: form.concerns(text) or _nccl.concerns(text))
    for line in lines:
        reader.see(line)
    reader.close()
    return reader.log(lines)


def read_rn50(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
    """What a log of ResNet-50 says between iterations 20 and 120, unless asked otherwise."""
    return _read(RN50, chunks, window)


def read_bert(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
    """What a log of BERT says between steps 19 and 119, counted from 0, unless asked otherwise."""
    return _read(BERT, chunks, window)


def _progress(form: Format, block: bytes) -> tuple[int, float] | None:
    for text in _lines.backwards(block, form.rated):
        step = form.step(text, 0)
        if step and isfinite(step.rate):
            return step.place.number, step.rate
    return None


def progress_rn50(block: bytes) -> tuple[int, float] | None:
    """Iteration and printed images/s of the last whole step line in ``block``; None without one."""
    return _progress(RN50, block)


def progress_bert(block: bytes) -> tuple[int, float] | None:
    """Step and printed sentences/s of the last whole step line in ``block``; None without one."""
    return _progress(BERT, block)
