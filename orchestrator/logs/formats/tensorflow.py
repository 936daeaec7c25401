"""NVIDIA's TensorFlow ResNet-50, with either of its loggers: header, steps, and its own result.

DLLogger prints a step in one line, ``(epoch, step) total_ips : 408.3``, and the step counts on
over all epochs. NVLOG, up to 2020, prints an iteration and then its rate in a line of its own.
Newer programs print their parameters in one line, and all print a few counts one by one.

Source: DeepLearningExamples, TensorFlow/Classification/ConvNets: runtime/runner.py and utils/hooks;
the variants are those of the logs in PaddlePaddle/Perf, 2020 to 2022.
"""

import re
from math import isfinite, nan

from orchestrator.logs import clock
from orchestrator.logs.engine import RESULT, Reader, Run
from orchestrator.logs.format import NUMBER, Agreement, Format, Promise, Step, parse_number
from orchestrator.logs.formats.dllogger import TIME, parameters, results
from orchestrator.logs.header import Header, Table, Value, count, keep, parser, real, switch, whole

TRAINING, BENCHMARK = "imgs_per_sec", "total_ips"
"""The names of a step's rate in mode train and in the benchmark modes."""
UNSHOWN = 20
"""Steps at the beginning that mode train never prints. Source: utils/hooks/training_hooks.py."""
_PARAMETERS = "parameters"
"""The key of a header that has a line of parameters."""

_RATE = rb"(?P<series>imgs_per_sec|total_ips) ?: (?P<rate>" + NUMBER + rb")(?!\S)"
# DLL 2020-12-16 07:21:56.228856 - (0, 200) total_ips : 395.8594442183251
_STEP = rb"DLL (?P<clock>" + TIME + rb") - \(\d{1,9}, (?P<iteration>\d{1,15})\) " + _RATE
_SEALED = re.compile(
    _STEP + rb"\s|^(?!.*DLL .*DLL ).*DLL " + TIME + rb" - \(\) [A-Za-z_]\w* : \S+\s[^:]*$"
)
# DLL 2020-12-16 07:23:10.1 - () train_throughput : 395.8
_OTHER = re.compile(
    rb"DLL "
    + TIME
    + rb" - (?:(?P<header>PARAMETER) |(?P<result>\(\)) [A-Za-z_]|\(\d{1,9},\) [A-Za-z_]"
    rb"|(?!PARAM)[A-Za-z])"
)
# :::NVLOGv0.2.3 resnet 1621936374.152874470 (benchmark_hooks.py:59) iteration: 450
_HEAD = rb":::NVLOGv\d[\w.]{0,20} \S{1,80} (?P<clock>\d{1,10}\.\d{6,9}) \([\w.]{1,80}:\d{1,9}\) "
_NVLOG = re.compile(
    rb"(?:\[\d{1,9},(?P<rank>\d{1,9})\]<std(?:out|err)>:)?"
    + _HEAD
    + rb"(?:iteration: (?P<iteration>\d{1,15})\s*$"
    rb"|" + _RATE + rb"\s*$|Average total_ips: (?P<average>" + NUMBER + rb")\s*$"
    rb"|(?!iteration|imgs_per_sec|total_ips|Average total))"
)
# DLLL {...} is a line of the program's own log.json.
_BROKEN = re.compile(
    rb"^(?!.*DLL).*:::NVLOG|^(?!.*DLLL \{).*"
    rb"(?:DLL \d|PARAMETER |train_throughput|imgs_per_sec :|total_ips ?:)"
)
_LOSS = re.compile(rb"(?:cross_entropy|loss) ?: (?![-+]?\.?\d)")  # nan, tensor(nan), nothing
# Per-GPU Batch Size 128
_COUNT = re.compile(
    rb"(?:.{0,80}<std(?:out|err)>:)?(?::::NVLOG\S{1,20} \S{1,80} [\d.]{1,30} \(\S{1,90}\) )?"
    rb"(?P<name>Num GPUs|Per-GPU Batch Size|Total Steps):? (?P<value>\d{1,15})(?:\.0)?\s*$"
)
_word = parser(r"[\w.-]{1,80}", str, "one word")
# Flags lost the ``use_`` of their names in 2021, and --amp and --static_loss_scale took the place
# of --use_tf_amp and --loss_scale.
_TABLE: Table = {
    "batch_size": ("micro_batch_size", count),
    "data_dir": ("has_data", switch),
    "data_idx_dir": ("has_index", switch),
    "precision": ("arithmetic", _word),
    "use_tf_amp": ("amp", switch),
    "use_xla": ("xla", switch),
    "use_dali": ("dali", switch),
    "use_static_loss_scaling": ("is_static", switch),
    "loss_scale": ("scale", real),
    "static_loss_scale": ("scale", real),
    "Num GPUs": ("world_size", count),
    "Per-GPU Batch Size": ("micro_batch_size", count),
    "Total Steps": ("total_steps", count),
    **keep(_word, "arch", "mode", "iter_unit", "data_format"),
    **keep(count, "num_iter", "display_every"),
    **keep(whole, "run_iter", "warmup_steps"),
    **keep(switch, "amp", "xla", "dali"),
}
_FOLDERS = ("data_dir", "data_idx_dir")


def _event(reader: Reader, line: bytes) -> bool:
    if b"DLL" in line:
        return _read_dllogger(reader, line)
    if b":::NVLOG" in line:
        return _read_nvlog(reader, line)
    return _read_other(reader, line)


def _read_dllogger(reader: Reader, line: bytes) -> bool:
    other = _OTHER.search(line) if line.count(b"DLL ") == 1 else None
    if other is None:
        return False
    if other["header"]:
        if reader.run.steps or _PARAMETERS in reader.run.header.keys:
            reader.restart(f"line {reader.line}: another header")
        header = reader.run.header
        header.keys.add(_PARAMETERS)
        for key, text in parameters(line):
            given = str(text != "None") if key in _FOLDERS and text else text
            header.add(key, given, reader.line)
    elif other["result"]:
        _conclude(reader, results(line))
    return True


def _read_nvlog(reader: Reader, line: bytes) -> bool:
    """Read a line of NVLOG; a step is the line of its number and then that of its rate."""
    found = _NVLOG.search(line) if line.count(b":::NVLOG") == 1 else None
    if found is None:
        return False
    rank, half, run = found["rank"] or b"", reader.half, reader.run
    if found["average"]:
        _conclude(reader, {RESULT: parse_number(found["average"])})
    elif found["iteration"]:
        if half:
            run.damaged.append(reader.line)
        stamp, number = found["clock"], int(found["iteration"])
        clock_ns = clock.of_seconds(stamp)
        reader.half = rank, Step(b"", stamp, clock_ns, 0, number, nan, None, b"", 0)
    elif found["rate"]:
        reader.half = None
        if half is None or half[0] != rank:
            return False
        series, text, rate = found["series"], found["rate"], parse_number(found["rate"])
        reader.step(half[1]._replace(series=series, rate=rate, text=text, line=reader.line))
    elif run.last and _LOSS.search(line):
        reader.lose(run.last.number)
    else:
        _read_other(reader, line)
    return True


def _read_other(reader: Reader, line: bytes) -> bool:
    """Read a count, such as ``Num GPUs 8``, or the start of a training."""
    run, found = reader.run, _COUNT.match(line)
    if found:
        run.header.add(found["name"].decode(), found["value"].decode(), reader.line)
    elif b" XLA is activated" in line:
        run.header.add("xla", "True", reader.line)
    elif b" TF AMP is activated" in line:
        run.header.add("amp", "True", reader.line)
    elif b"Starting Model Training" in line:
        if run.steps:
            reader.restart(f"line {reader.line}: another training is started")
    else:
        return False
    return True


def _conclude(reader: Reader, reported: dict[str, float]) -> None:
    """Take the results that the program reports at its end, after the last step of its run."""
    run = reader.run
    for name, value in reported.items():
        if name == RESULT:
            run.result_line = run.result_line or reader.line
        before = run.reported.setdefault(name, value)
        if isfinite(value) and value != before:
            seen = f"line {reader.line}: {name} {value:g} after {before:g}"
            run.notes.add("DUP-STEPS", seen, sort=name)
        if value != before:  # neither of two values can be trusted
            run.reported[name] = nan
    run.is_over = RESULT in run.reported


def _config(run: Run) -> dict[str, Value]:
    header, mode = run.header, run.header.get("mode")
    names = ("arch", "mode", "micro_batch_size", "world_size", "data_format", "xla")
    config = {name: header.get(name) for name in names}
    precision = _precision(header)
    config |= {"iterations": _iterations(header), "precision": precision}
    is_static = header.get("is_static")
    if precision == "amp" and is_static is not None:
        config["loss_scale"] = header.get("scale") if is_static else "dynamic"
    dali = header.get("dali")  # without an index the program leaves it out
    config["dali"] = header.get("has_index") if dali else dali
    has_data = header.get("has_data")
    if has_data is not None:
        config["data"] = "tfrecord" if has_data else "synthetic"
    if mode != "train":  # which ignores it, and whose scripts set it differently
        config["warmup_steps"] = header.get("warmup_steps")
    return {name: value for name, value in config.items() if value is not None}


def _iterations(header: Header) -> int | None:
    return header.number("num_iter" if header.get("iter_unit") == "batch" else "total_steps")


def _precision(header: Header) -> str | None:
    """Return amp for both ways: TensorFlow's rewriting of the graph, or half precision outright."""
    if not header.is_certain("amp", "arithmetic"):
        return None
    amp = header.get("amp")
    if amp or header.get("arithmetic") == "fp16":
        return "amp"
    return None if amp is None else "fp32"


def _promise(run: Run) -> Promise:
    """Return the promised steps: N steps count from 0 to N - 1, in mode train maybe from 1 to N.

    Some releases print every step of a benchmark whatever ``--display_every`` asks for.
    """
    header, total, every = run.header, _iterations(run.header), run.header.number("display_every")
    stride = min((it for it in (every, run.usual) if it), default=1)
    is_training = run.series.decode() == TRAINING
    unshown = header.number("warmup_steps")
    if is_training or (not run.series and header.get("mode") == "train"):
        unshown = UNSHOWN
    begins = None if unshown is None or every is None else -(-unshown // every) * every
    some = header.number("run_iter") or 0
    if total is not None and some > 0:
        total = min(total, some)
    first = run.first.number if run.first else begins or 0
    last = (total or 0) - (not (is_training and begins is not None and first == begins + 1))
    tells = {"micro_batch_size", "world_size"} if header.keys else set()
    return Promise(
        interval=stride,
        first=first if begins is None else begins + is_training,
        lines=None if total is None else max((last - first) // stride + 1, 0),
        tells=frozenset(tells | ({"precision"} if _PARAMETERS in header.keys else set())),
    )


TENSORFLOW = Format(
    unit="images/s",
    step=_STEP + rb"(?>(?:  [a-z]\w{0,40}+ : " + NUMBER + rb")*)",
    marks=(
        *(b"DLL", b":::NVLOG", b"_ips", b"imgs_per", b"throughput"),
        *(b"Num GPUs", b"Per-GPU", b"Total Steps"),
        *(b"Starting Model Training", b"Ending Model Training"),
    ),
    alone=(b"DLL ",),
    lost=_LOSS,
    sealed=_SEALED,
    end=re.compile(rb"Ending Model Training|train_throughput : |Average total_ips: "),
    agreement=Agreement(step=0.02, window=0.004),  # recorded: 1.7 % of a step, 0.21 % of 20
    window=(21, 120),
    reporting=frozenset({BENCHMARK, "training_benchmark"}),
    header=_TABLE,
    needed=(
        ("micro_batch_size", frozenset({"batch_size", "Per-GPU Batch Size"})),
        ("world_size", frozenset({"Num GPUs"})),
        ("iterations", frozenset({"num_iter", "Total Steps"})),
    ),
    headerless=(
        "HEADERLESS",  # the recorded logs of 32 ranks under mpirun are whole and have no header
        "no line of parameters, nor of GPUs and batch size, before the steps",
    ),
    event=_event,
    broken=_BROKEN.search,
    config=_config,
    promise=_promise,
)
