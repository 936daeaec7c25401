"""Lets a program for GPUs train on CPUs: tensors stay where they are, and NCCL is gloo."""

import os

from after_import import after_import


def _nothing():
    """A new function that does nothing: PyTorch 2 wants each of its own to be another one."""
    return lambda *args, **kwargs: None


def _device_count():
    return len([word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",") if word])


def _adapt(torch):
    torch.set_num_threads(1)
    for name in ("set_device", "synchronize", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, _nothing())
    torch.cuda.device_count = _device_count
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.nn.Module.cuda = lambda self, *args, **kwargs: self
    _adapt_distributed()


def _adapt_distributed():
    import torch.distributed as dist

    init = dist.init_process_group

    def init_with_gloo(backend, **kwargs):
        interface = os.environ.get("NCCL_SOCKET_IFNAME", "").lstrip("=")
        if interface:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        return init(backend="gloo", **kwargs)

    dist.init_process_group = init_with_gloo


after_import("torch", _adapt)
