"""Container images: what goes into one and what it is called, and what a node still lacks. Pure.

``recipe`` turns an image definition, the digest of its base and the checksums of its parts into a
tag; ``needed`` says what is left until every node has it: pull, build, carry. Which digest of a
base is believed (lock, last provisioning, registry) is decided in ``provisioning/recipes``.
"""

from orchestrator.images.needed import Action, actions, known_as
from orchestrator.images.recipe import (
    IMAGE_LABEL,
    INPUTS_LABEL,
    OWNER_LABEL,
    STATE_LABEL,
    HeldImage,
    ImageRecipe,
    Reference,
    base_to_build_from,
    build_args,
    ignored,
    inputs_digest,
    labels,
    pinned,
    reference,
    tag,
)

__all__ = [
    "IMAGE_LABEL",
    "INPUTS_LABEL",
    "OWNER_LABEL",
    "STATE_LABEL",
    "Action",
    "HeldImage",
    "ImageRecipe",
    "Reference",
    "actions",
    "base_to_build_from",
    "build_args",
    "ignored",
    "inputs_digest",
    "known_as",
    "labels",
    "pinned",
    "reference",
    "tag",
]
