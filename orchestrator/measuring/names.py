"""Case and repeat in DLPerf's names of logs, such as ``4n8g/r50_b128_fp32_1.log``."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.model.case import AXES, Case
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload

_TOKEN = re.compile(r"([1-9][0-9]*)n([1-9][0-9]*)[gd]")
_NAME = re.compile(
    r"(\w+?)_b([1-9][0-9]*)_(fp32|fp16|bf16|amp)([^_]*)_([1-9][0-9]*)\.log", re.ASCII
)
_REPEAT = re.compile(r".*_([1-9][0-9]{0,3})")
# What a header must say before it alone makes a log one of a case.
_WHOLE = ("nodes", "gpus_per_node", "micro_batch_size")


@dataclass(frozen=True, slots=True)
class _Place:
    """Placement and batch of a case, from a log's name or header."""

    nodes: int
    gpus_per_node: int
    micro_batch_size: int


def case_of(path: str, header: Mapping[str, Scalar], workload: Workload) -> tuple[Case, int] | None:
    """The case and repeat in a log's name, completed from its header.

    Args:
        path: of a log, absolute, such as ``.../2n8g/r50_b128_fp32_1.log``.

    Returns:
        None where neither name nor header has the whole case.
    """
    folder, file = posixpath.split(path)
    token, name = _TOKEN.fullmatch(posixpath.basename(folder)), _NAME.fullmatch(file)
    stem = posixpath.splitext(file)[0]
    from_name = workload.told_by_name(stem)
    header = {**header, **from_name}  # a header that says otherwise is a mismatch, not another case
    if token is None or name is None:
        return _from_header(stem, header, workload)
    precision = "amp" if name[3] == "fp16" else name[3]
    label = (name[1] if name[1] != workload.log_prefix else "") + ("" if from_name else name[4])
    place = _Place(int(token[1]), int(token[2]), int(name[2]))
    case = _case(place, precision, header, workload)
    if label:  # what the name says beyond the case must not be lost in a median
        case = replace(case, params=(*case.params, ("named", label.strip("-"))))
    return case, int(name[5])


def _from_header(
    stem: str, header: Mapping[str, Scalar], workload: Workload
) -> tuple[Case, int] | None:
    """The case in a header, and the repeat at the end of the name, else 1."""
    place = tuple(value for key in _WHOLE if isinstance(value := header.get(key), int))
    precision = header.get("precision")
    if len(place) < len(_WHOLE) or not isinstance(precision, str):
        return None
    repeat = _REPEAT.fullmatch(stem)
    nodes, gpus, micro_batch_size = place
    case = _case(_Place(nodes, gpus, micro_batch_size), precision, header, workload)
    return case, int(repeat[1]) if repeat else 1


def _case(place: _Place, precision: str, header: Mapping[str, Scalar], workload: Workload) -> Case:
    params = {name: header[name] for name in workload.params.model_fields if name in header}
    if precision != "amp":
        params.pop("loss_scale", None)
    axes = {
        axis.name: value
        for axis in AXES
        if isinstance(value := header.get(axis.name), int) and value > 0
    }
    return Case(
        nodes=place.nodes,
        gpus_per_node=place.gpus_per_node,
        micro_batch_size=place.micro_batch_size,
        precision=precision,
        device=str(header.get("device", "cuda")),
        params=tuple(params.items()),
        **axes,
    )
