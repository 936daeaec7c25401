"""Reads case and repeat from DLPerf's names of logs, such as ``4n8g/r50_b128_fp32_1.log``."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace

from orchestrator.model.case import AXES, Case
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload

_TOKEN = re.compile(r"([1-9][0-9]*)n([1-9][0-9]*)[gd]")
_NAME = re.compile(
    r"(\w+?)_b([1-9][0-9]*)_(fp32|fp16|bf16|amp)([^_]*)_([1-9][0-9]*)\.log", re.ASCII
)
_REPEAT = re.compile(r".*_([1-9][0-9]{0,3})")
# Without a name, a header must have these.
_WHOLE = ("nodes", "gpus_per_node", "micro_batch_size")


def case_of(path: str, header: Mapping[str, Scalar], workload: Workload) -> tuple[Case, int] | None:
    """Return case and repeat by a log's name and header, None if both lack part of the case.

    Args:
        path: absolute, such as ``.../2n8g/r50_b128_fp32_1.log``.
    """
    folder, file = posixpath.split(path)
    token, name = _TOKEN.fullmatch(posixpath.basename(folder)), _NAME.fullmatch(file)
    stem = posixpath.splitext(file)[0]
    from_name = workload.told_by_name(stem)
    header = {**header, **from_name}  # a header that contradicts the name is a mismatch
    if token is None or name is None:
        return _from_header(stem, header, workload)
    precision = "amp" if name[3] == "fp16" else name[3]
    label = (name[1] if name[1] != workload.log_prefix else "") + ("" if from_name else name[4])
    place = int(token[1]), int(token[2]), int(name[2])
    case = _case(place, precision, header, workload)
    if label:  # logs with different names must not share a median
        case = replace(case, params=(*case.params, ("named", label.strip("-"))))
    return case, int(name[5])


def _from_header(
    stem: str, header: Mapping[str, Scalar], workload: Workload
) -> tuple[Case, int] | None:
    """Return the case in a header, and the repeat at the end of the name, else 1."""
    place = tuple(value for key in _WHOLE if isinstance(value := header.get(key), int))
    precision = header.get("precision")
    if len(place) < len(_WHOLE) or not isinstance(precision, str):
        return None
    repeat = _REPEAT.fullmatch(stem)
    nodes, gpus, micro_batch_size = place
    case = _case((nodes, gpus, micro_batch_size), precision, header, workload)
    return case, int(repeat[1]) if repeat else 1


def _case(
    place: tuple[int, int, int], precision: str, header: Mapping[str, Scalar], workload: Workload
) -> Case:
    """Return a case of so many nodes, GPUs per node and samples per GPU."""
    params = {name: header[name] for name in workload.params.model_fields if name in header}
    if precision != "amp":
        params.pop("loss_scale", None)
    axes = {
        axis.name: value
        for axis in AXES
        if isinstance(value := header.get(axis.name), int) and value > 0
    }
    return Case(
        nodes=place[0],
        gpus_per_node=place[1],
        micro_batch_size=place[2],
        precision=precision,
        device=str(header.get("device", "cuda")),
        params=tuple(params.items()),
        **axes,
    )
