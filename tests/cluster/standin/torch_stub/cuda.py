"""Stub of torch.cuda: GPUs as the environment shows them; there are none."""

import os

GPUS_OF_A_NODE = 8


def device_count() -> int:
    """How many GPUs this process may see."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return GPUS_OF_A_NODE
    return len([word for word in visible.split(",") if word])


def set_device(device: int) -> None:
    """Nothing, for a GPU that is there.

    Raises:
        RuntimeError: it is not there.
    """
    if not 0 <= device < device_count():
        raise RuntimeError("CUDA error: invalid device ordinal")
