"""Reads case and repeat from DLPerf's names of logs, such as ``4n8g/r50_b128_fp32_1.log``."""

import posixpath
import re
from collections.abc import Mapping

from orchestrator.model.case import AXES, Case
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload

_TOKEN = re.compile(r"([1-9][0-9]*)n([1-9][0-9]*)[gd]")
_NAME = re.compile(
    r"(\w+?)_b([1-9][0-9]*)_(fp32|fp16|bf16|amp)([^_]*)_([1-9][0-9]*)\.log", re.ASCII
)
_REPEAT = re.compile(r".*_([1-9][0-9]{0,3})")


def read_case(
    path: str, header: Mapping[str, Scalar], workload: Workload
) -> tuple[Case, int] | None:
    """Return case and repeat by a log's name and header, None if both lack part of the case.

    A log of another name is the repeat at the end of the name, else 1.

    Args:
        path: absolute, such as ``.../2n8g/r50_b128_fp32_1.log``.
    """
    folder, file = posixpath.split(path)
    token, name = _TOKEN.fullmatch(posixpath.basename(folder)), _NAME.fullmatch(file)
    stem = posixpath.splitext(file)[0]
    from_name = workload.told_by_name(stem)
    header = {**header, **from_name}  # a header that contradicts the name is a mismatch
    label = ""
    if token and name:
        nodes, gpus, batch = int(token[1]), int(token[2]), int(name[2])
        precision, repeat = "amp" if name[3] == "fp16" else name[3], int(name[5])
        label = (name[1] if name[1] != workload.log_prefix else "") + ("" if from_name else name[4])
    else:
        match [
            header.get(key) for key in ("nodes", "gpus_per_node", "micro_batch_size", "precision")
        ]:
            case [int(nodes), int(gpus), int(batch), str(precision)]:
                of_name = _REPEAT.fullmatch(stem)
                repeat = int(of_name[1]) if of_name else 1
            case _:
                return None
    params = {name: header[name] for name in workload.params.model_fields if name in header}
    if precision != "amp":
        params.pop("loss_scale", None)
    if label:  # logs with different names must not share a median
        params["named"] = label.strip("-")
    axes = {
        axis: value for axis in AXES if isinstance(value := header.get(axis), int) and value > 0
    }
    case = Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=batch,
        precision=precision,
        device=str(header.get("device", "cuda")),
        params=tuple(params.items()),
        **axes,
    )
    return case, repeat
