"""Stub programs of nodes and images, with the recordings that they replay."""

from pathlib import Path

_HERE = Path(__file__).parent
_RECORDINGS = _HERE.parent / "recordings"
_IBSTAT = _HERE.parents[1] / "samples" / "ibstat" / "dlperf_seed_vs002_mt4115.txt"
# The order of nvidia-smi: four GPUs on each processor's PCIe.
_BUSES = ("1A", "1B", "3D", "3E", "88", "89", "B1", "B2")


def gpus() -> dict[str, bytes]:
    """Files of the stub of nvidia-smi, by name; @NODE@ is filled in by the stub."""
    template = (_RECORDINGS / "gpu.xml").read_text()
    each = (
        template.replace("@GPU@", str(index)).replace("@BUS@", f"00000000:{bus}:00.0")
        for index, bus in enumerate(_BUSES)
    )
    document = (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v10.dtd">\n'
        "<nvidia_smi_log>\n    <timestamp>Tue Sep 15 14:28:53 2020</timestamp>\n"
        "    <driver_version>440.33.01</driver_version>\n    <cuda_version>10.2</cuda_version>\n"
        f"    <attached_gpus>{len(_BUSES)}</attached_gpus>\n{''.join(each)}</nvidia_smi_log>\n"
    )
    return {
        "nvidia-smi": (_HERE / "nvidia-smi").read_bytes(),
        "nvidia-smi.xml": document.encode(),
        "topo.txt": (_RECORDINGS / "topo.txt").read_bytes(),
        "fields.csv": (_RECORDINGS / "fields.csv").read_bytes(),
        "utilization.csv": (_RECORDINGS / "utilization.csv").read_bytes(),
    }


def infiniband() -> dict[str, bytes]:
    """Files of the stubs of InfiniBand's user space, by name."""
    prompt, _, recorded = _IBSTAT.read_bytes().partition(b"\n")
    assert prompt.endswith(b"# ibstat"), prompt
    programs = {
        name: (_HERE / name).read_bytes() for name in ("ibstat", "ibv_devinfo", "ofed_info")
    }
    doctored = (_RECORDINGS / "ibv_devinfo.txt").read_bytes()
    return {**programs, "ibstat.txt": recorded, "ibv_devinfo.txt": doctored}


def write(folder: Path) -> None:
    """Put the stubs of a node into a folder."""
    folder.mkdir(parents=True)
    runtime = {"nvidia-container-runtime": (_HERE / "nvidia-container-runtime").read_bytes()}
    for name, content in {**gpus(), **infiniband(), **runtime}.items():
        path = folder / name
        path.write_bytes(content)
        path.chmod(0o644 if "." in name else 0o755)
