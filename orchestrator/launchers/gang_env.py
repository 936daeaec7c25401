"""Environment that gangs of ranks on GPUs share, whatever program they run."""

from collections.abc import Mapping

from orchestrator.model.case import Case
from orchestrator.model.plan import Placement, Seat


def environment(case: Case, placement: Placement, seat: Seat) -> Mapping[str, str]:
    """Return visible devices and, for several nodes, how NCCL and gloo find each other.

    CUDA_DEVICE_ORDER makes CUDA count GPUs as nvidia-smi does, not the fastest first.
    NCCL_DEBUG=INFO makes the log itself prove which transport was used. A leading ``=`` makes
    NCCL compare names whole, or eth1 would also take eth10, and mlx5_1 mlx5_10; gloo takes one
    whole name and knows no such sign.
    Source: CUDA C++ programming guide; NCCL user guide, environment variables; gloo,
    transport/tcp/device.cc, lookupAddrForIface.
    """
    on_gpus, several = case.device == "cuda", len(placement.seats) > 1
    env = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, seat.gpus)) if on_gpus else ""}
    if on_gpus:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if several and seat.interface and on_gpus:
        env["NCCL_SOCKET_IFNAME"] = f"={seat.interface}"
    elif several and seat.interface:
        env["GLOO_SOCKET_IFNAME"] = seat.interface
    if several and on_gpus:
        env["NCCL_DEBUG"] = "INFO"
        if seat.hcas:
            env["NCCL_IB_HCA"] = "=" + ",".join(seat.hcas)
        if seat.gid_index is not None:
            env["NCCL_IB_GID_INDEX"] = str(seat.gid_index)
        if seat.traffic_class is not None:
            env["NCCL_IB_TC"] = str(seat.traffic_class)
    return env
