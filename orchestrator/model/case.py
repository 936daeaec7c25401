"""One point of an experiment's matrix, and the arithmetic of batches and parallelism."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

from orchestrator.model.text import Scalar

NAMED_BY = frozenset(
    {
        *("placement", "nodes", "gpus_per_node", "world_size", "precision", "micro_batch_size"),
        *("global_batch_size", "data_parallel"),
    }
)
"""Fields of a case's document that every name of it has, and what follows from them."""


def _axis(meaning: str, *, most: int = 65536, divides: bool = False) -> Any:
    """Return a field of a case that playbooks, reports and tables have as an axis of its own.

    Args:
        meaning: a sentence for schemas and pages.
        divides: whether so many ranks share one replica of the model.
    """
    return field(default=1, metadata={"meaning": meaning, "most": most, "divides": divides})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One point of the matrix; what is no field is derived."""

    nodes: int
    gpus_per_node: int
    micro_batch_size: int
    precision: str
    device: str
    accumulation_steps: int = _axis(
        "Forward passes of each replica in one optimizer step.", most=1_000_000
    )
    tensor_parallel: int = _axis("Ranks that share each layer of a replica.", divides=True)
    pipeline_parallel: int = _axis("Stages of layers that a replica is cut into.", divides=True)
    params: tuple[tuple[str, Scalar], ...] = ()

    @property
    def world_size(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def data_parallel(self) -> int:
        """Return the number of replicas of the model that see different samples."""
        return self.world_size // self.ranks_per_replica

    @property
    def ranks_per_replica(self) -> int:
        return math.prod(self._axes(divides=True).values())

    @property
    def global_batch_size(self) -> int:
        """Return the samples per optimizer step of the whole gang."""
        return self.micro_batch_size * self.data_parallel * self.accumulation_steps

    @property
    def token(self) -> str:
        """Return DLPerf's folder name of the placement, such as ``4n8g``."""
        return f"{self.nodes}n{self.gpus_per_node}g"

    @property
    def placement(self) -> str:
        """Return the placement as a playbook writes it, such as ``4x8``."""
        return f"{self.nodes}x{self.gpus_per_node}"

    @property
    def given(self) -> Mapping[str, Scalar]:
        return dict(self.params)

    @property
    def comparable(self) -> tuple[object, ...]:
        """Return a key that is equal for two cases that differ only in their placement."""
        settings = (self.micro_batch_size, self.precision, self.device)
        return (*settings, *(getattr(self, axis.name) for axis in AXES), self.params)

    def _axes(self, *, divides: bool) -> dict[str, int]:
        return {
            axis.name: getattr(self, axis.name)
            for axis in AXES
            if axis.metadata["divides"] is divides
        }

    def document(self) -> dict[str, Scalar]:
        """Return every field and derived value by name, for JSON."""
        return {
            "placement": self.placement,
            "nodes": self.nodes,
            "gpus_per_node": self.gpus_per_node,
            "world_size": self.world_size,
            "precision": self.precision,
            "device": self.device,
            "micro_batch_size": self.micro_batch_size,
            **self._axes(divides=False),
            "global_batch_size": self.global_batch_size,
            "data_parallel": self.data_parallel,
            **self._axes(divides=True),
            **{f"params.{name}": value for name, value in self.params},
        }


AXES: tuple[Field[int], ...] = tuple(it for it in fields(Case) if "meaning" in it.metadata)
"""The axes beyond placement, precision and micro batch; a program names those that it can do."""


def distinctions(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """Return, for each case, a word for each field beyond ``NAMED_BY`` in which cases differ.

    Of letters, digits and dots, as names of files may hold: two values may give the same word.
    """
    documents = [case.document() for case in cases]
    varying = [
        name
        for name in dict.fromkeys(name for document in documents for name in document)
        if name not in NAMED_BY and len({document.get(name) for document in documents}) > 1
    ]
    return [
        tuple(_word(name, document[name]) for name in varying if name in document)
        for document in documents
    ]


def _word(name: str, value: Scalar) -> str:
    return re.sub(r"[^A-Za-z0-9.]", "", f"{name.removeprefix('params.')}{value}")
