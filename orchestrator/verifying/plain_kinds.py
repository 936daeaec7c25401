"""How each program prints a step: one pattern per kind of line."""

import re
from dataclasses import dataclass

_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_LOST = r"[-+]?(?i:nan(?:\([\w-]*\))?|inf(?:inity)?)"
_NUMBER = rf"(?:-?\d{{1,30}}(?:\.\d{{1,30}})?(?:[eE][-+]?\d{{1,2}})?|{_LOST})"
_STEP = r"(?P<iteration>\d{1,15})"
_SAID = rf"(?:[\w.]+ : (?:-?\d[\d.e+-]*|{_LOST})(?: [^\s:\0]+)?|None) +"
_LOSSES = rf"(?:\w+: {_NUMBER}, )*"
_NVLOG = r":::NVLOG\S+ \S+ (?P<seconds>\d{1,10}\.\d+) \([^)]*\) "


@dataclass(frozen=True, slots=True)
class Kind:
    """How one program prints a step.

    Args:
        mark: what such a line has, since that is found sooner than the pattern.
        alone: what it has once; twice, it holds pieces of two lines.
    """

    name: str
    mark: str
    alone: re.Pattern[str]
    pattern: re.Pattern[str]


KINDS = (
    # NVIDIA's PyTorch programs
    Kind(
        "dllogger",
        " Iteration: ",
        re.compile("DLL "),
        re.compile(
            rf"DLL {_STAMP} - Epoch: (?P<epoch>\d{{1,15}}) Iteration: {_STEP} +(?:{_SAID})*?"
            rf"train\.total_ips : (?P<rate>{_NUMBER}) im(?:g|ages)/s"
        ),
    ),
    # NVIDIA's TensorFlow program
    Kind(
        "tensorflow",
        "_",
        re.compile("DLL "),
        re.compile(
            rf"DLL {_STAMP} - \(\d+, {_STEP}\) (?P<series>imgs_per_sec|total_ips) ?:"
            rf" (?P<rate>{_NUMBER})(?!\S)"
        ),
    ),
    # OneFlow's ResNet-50 and BERT
    Kind(
        "cnn",
        "train: epoch ",
        re.compile(r"(?<!\w)train:"),
        re.compile(
            rf"(?<!\w)train: epoch (?P<epoch>\d{{1,15}}), iter {_STEP}, {_LOSSES}samples/s:"
            rf" (?P<rate>\d{{1,30}}\.\d{{3}}|{_LOST})"
            r"(?: (?P<seconds>\d{9,10}\.\d+))?\s*$"
        ),
    ),
    Kind(
        "bert",
        "step: ",
        re.compile(r"(?<!\w)step:"),
        re.compile(
            rf"(?<!\w)step: {_STEP}, {_LOSSES}throughput: (?P<rate>\d{{1,30}}\.\d{{3}}|{_LOST})"
            r"(?:, [a-z]\w*: [-\d.]+)*(?: (?P<seconds>\d{9,10}\.\d+))?\s*$"
        ),
    ),
    # OneFlow's GPT
    Kind(
        "gpt",
        "|",
        re.compile("\n"),
        re.compile(
            rf"^[^|]*\| *{_STEP} *\| *\d+ *\| *\d+ *\| *(?P<rate>\d{{1,30}}\.\d{{5}}) *\|"
            rf" *(?P<latency>\d{{1,30}}\.\d{{5}}) *\|(?: *(?:-?\d+\.\d{{5}}|{_LOST}) *\|)*\s*$"
        ),
    ),
    # our all-reduce
    Kind(
        "all_reduce",
        "busbw=",
        re.compile("iteration="),
        re.compile(rf"iteration={_STEP} us=(?P<us>{_NUMBER}) busbw=(?P<rate>{_NUMBER}) GB/s"),
    ),
)
ENDS = re.compile(
    r"Experiment ended|DLL .* - Summary: |Ending Model Training|train_throughput : "
    r"|Average total_ips: |Saving model to \S*snapshot_(?:epoch_\d|last)"
)
"""What a program says where it ends by itself."""
HALF = re.compile(rf"{_NVLOG}iteration: {_STEP}\s*$")
OTHER_HALF = re.compile(_NVLOG + rf"(?P<series>imgs_per_sec|total_ips) ?: (?P<rate>{_NUMBER})\s*$")
REPORTED = re.compile(
    rf"DLL {_STAMP} - \(\) train_throughput : ({_NUMBER})(?!\S)"
    rf"|:::NVLOG\S+ \S+ [\d.]+ \([^)]*\) Average total_ips: ({_NUMBER})\s*$"
)
BOTH = re.compile(
    HALF.pattern.removesuffix(r"\s*$") + r"\n.*?" + OTHER_HALF.pattern.replace("?P<seconds>", "")
)
