"""One point of an experiment's matrix, and the arithmetic of batches and parallelism."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.model.text import Scalar

NAMED_BY = frozenset(
    {
        *("placement", "nodes", "gpus_per_node", "world_size", "precision", "micro_batch_size"),
        *("global_batch_size", "data_parallel"),
    }
)
"""Fields of a case's document that every name of it has, and what follows from them."""
AXES = ("accumulation_steps", "tensor_parallel", "pipeline_parallel")
"""Axes beyond placement, precision and micro batch, 1 by default; a program names those it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One point of the matrix; what is no field is derived."""

    nodes: int
    gpus_per_node: int
    micro_batch_size: int
    precision: str
    device: str
    accumulation_steps: int = 1
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
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
        return self.tensor_parallel * self.pipeline_parallel

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
        return (*settings, *self.axes.values(), self.params)

    @property
    def axes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in AXES}

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
            "accumulation_steps": self.accumulation_steps,
            "global_batch_size": self.global_batch_size,
            "data_parallel": self.data_parallel,
            "tensor_parallel": self.tensor_parallel,
            "pipeline_parallel": self.pipeline_parallel,
            **{f"params.{name}": value for name, value in self.params},
        }


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
