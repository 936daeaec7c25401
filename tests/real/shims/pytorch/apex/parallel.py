"""Data parallelism by PyTorch's own module."""

from torch.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
