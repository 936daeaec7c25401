"""Tests of what the virtual nodes' layers contain."""

from email import message_from_string
from pathlib import Path

import pytest

from tests.cluster import layers

SAMPLES = Path(__file__).parents[1] / "samples" / "pytorch-metadata"
# What `pip install --dry-run --report - torch==2.13.0` lists for each build.
CPU = {
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "setuptools", "sympy"),
    *("torch", "typing-extensions"),
}
CUDA = CPU | {
    *("cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-cublas", "nvidia-cuda-cupti"),
    *("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-cufft"),
    *("nvidia-cufile", "nvidia-curand", "nvidia-cusolver", "nvidia-cusparse"),
    *("nvidia-cusparselt-cu13", "nvidia-nccl-cu13", "nvidia-nvjitlink", "nvidia-nvshmem-cu13"),
    *("nvidia-nvtx", "triton"),
}


def install(folder: Path, text: str) -> str:
    """Write the metadata of installed packages, as importlib.metadata finds them in a folder."""
    for block in text.strip().split("\n\n"):
        about = message_from_string(block)
        info = folder / f"{about['Name'].replace('-', '_')}-{about['Version']}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"{block}\n\n")
    return str(folder)


@pytest.mark.parametrize(("build", "listed"), [("cpu", CPU), ("cuda", CUDA)])
def test_a_node_gets_what_pip_installs_for_torch(
    build: str, listed: set[str], tmp_path: Path
) -> None:
    """libcudart is in nvidia-cuda-runtime, which torch requires by ``cuda-toolkit[cudart]``."""
    path = install(tmp_path, (SAMPLES / f"{build}.txt").read_text())
    assert layers.list_required("torch", [path]) == listed


def test_extras_of_extras_are_followed_and_others_are_not(tmp_path: Path) -> None:
    """``a[x]`` may require ``a[y]``, names are spelled in any way, and a circle ends."""
    path = install(
        tmp_path,
        "Name: top\nVersion: 1\nRequires-Dist: A_b[X.x]\n\n"
        "Name: a.b\nVersion: 1\nRequires-Dist: a-b[y]; extra == 'x-x'\n"
        "Requires-Dist: deep; extra == 'y'\nRequires-Dist: unasked; extra == 'z'\n\n"
        "Name: deep\nVersion: 1\nRequires-Dist: top\n"
        "Requires-Dist: windows; sys_platform == 'win32'\n",
    )
    assert layers.list_required("top", [path]) == {"top", "a-b", "deep"}
