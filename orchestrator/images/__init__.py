"""Container images: what goes into one and what it is called, and what a node still lacks. Pure.

``base`` says where one lies that others build on; ``recipe`` turns an image definition, the digest
of its base and the checksums of its parts into a tag; ``todo`` says what is left until every node
has it. Where a base's digest comes from (lock, registry, archive) is in
``provisioning/image_inputs``.
"""

from orchestrator.images.base import Reference, pinned, reference
from orchestrator.images.recipe import (
    INPUTS_LABEL,
    ImageRecipe,
    base_to_build_from,
    build_args,
    ignored,
    inputs_digest,
    labels,
    tag,
)
from orchestrator.images.todo import Action, HeldImage, actions

__all__ = [
    "INPUTS_LABEL",
    "Action",
    "HeldImage",
    "ImageRecipe",
    "Reference",
    "actions",
    "base_to_build_from",
    "build_args",
    "ignored",
    "inputs_digest",
    "labels",
    "pinned",
    "reference",
    "tag",
]
