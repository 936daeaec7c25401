"""Stand-in images of a run: in the storage of Debian's docker-registry, and one as a file."""

import hashlib
import io
import json
import os
import platform
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import layers, processes, stubs
from tests.cluster.layers import Layer
from tests.cluster.place import REGISTRY, Place

_HERE = Path(__file__).parent
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PYTORCH, TENSORFLOW = "nvidia/pytorch", "nvidia/tensorflow"
GPT = "oneflow-manylinux2014-cuda11.2:0.1"
SETTINGS = {
    "Env": [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PIP_BREAK_SYSTEM_PACKAGES=1",  # Debian's Python is nobody else's in an image
    ]
}
# Ranks outnumber processors here by far, and OpenMPI takes them for alone; and nothing may be
# traced in a container, by which ranks of a node would look into each other's memory.
MPI_SETTINGS = b"""mpi_yield_when_idle = 1
btl_vader_single_copy_mechanism = none
rmaps_base_oversubscribe = 1
"""
_PYTHON = "usr/lib/python3/dist-packages"
# The image registry:2 for the node, of this machine's program: all that the line of the page needs.
STAND_IN = """
cd "$(mktemp -d)" && mkdir etc
cat >etc/it.yml <<END
{version: 0.1, storage: {filesystem: {rootdirectory: /data}}, http: {addr: ":5000"}}
END
libraries=$(ldd /usr/bin/docker-registry | grep -o '/lib[^ ]*')
tar -ch -C / usr/bin/docker-registry $libraries -C "$PWD" etc/it.yml |
    docker import -c 'ENTRYPOINT ["docker-registry", "serve", "/etc/it.yml"]' - registry:2
"""


def fill(place: Place) -> None:
    """Put the stand-ins of nvcr.io's images into the run's registry."""
    base = layers.build_debian(place)
    old = {
        "Entrypoint": ["/usr/local/bin/nvidia_entrypoint.sh"],
        "Cmd": ["/bin/bash"],
        "WorkingDir": "/workspace",
        **SETTINGS,
    }
    pytorch = (base, layers.build_pip(place), layers.build_files(place, "stand-in", _pytorch()))
    put(place, f"{PYTORCH}:20.03-py3", pytorch, old)
    new = {"Cmd": ["/bin/bash"], "WorkingDir": "/workspace", **SETTINGS}
    put(place, f"{PYTORCH}:25.01-py3", (base, layers.build_torch(place)), new)
    mpi = layers.build_debian(place, *layers.MPI)
    tensorflow = (mpi, layers.build_files(place, "stand-in", _tensorflow()))
    paths = {"Env": [*SETTINGS["Env"], "LD_LIBRARY_PATH=/usr/local/lib"]}
    put(place, f"{TENSORFLOW}:20.03-tf1-py3", tensorflow, {**old, **paths})


def save(place: Place, path: Path) -> None:
    """Write the stand-in of OneFlow's own image as `docker save` would; made once a machine."""
    parts = (
        layers.build_debian(place),
        layers.build_pip(place),
        layers.build_files(place, "stand-in", _oneflow()),
    )
    config = _config(parts, {"Cmd": ["/bin/bash"], **SETTINGS})
    kept = place.cache / f"saved-{hashlib.sha256(config).hexdigest()[:16]}.tar"
    if not kept.exists():
        aside = place.cache / f"saved.{place.run}"
        _write_saved(aside, config, parts)
        aside.rename(kept)
    _linked(kept, path)


def serve(place: Place) -> None:
    """Start the registry on the bridge; returns before it listens."""
    settings = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(place.folder / "registry")},
            "delete": {"enabled": True},
        },
        "http": {"addr": REGISTRY},
    }
    path = place.folder / "registry.json"
    path.write_text(json.dumps(settings))  # JSON is YAML
    argv = (*place.inside(), "docker-registry", "serve", str(path))
    processes.start(place, argv, log=place.folder / "registry.log")


def _pytorch() -> dict[str, bytes]:
    """Files of the stand-in of PyTorch, by path: a stub of torch, nvidia-smi, the entry point."""
    torch = (_HERE / "standin/torch_stub").glob("*.py")
    return {
        **{f"{_PYTHON}/torch/{path.name}": path.read_bytes() for path in torch},
        **hardware(),
        **_entry_point("PyTorch"),
    }


def _tensorflow() -> dict[str, bytes]:
    """Files of the stand-in of TensorFlow, likewise with a stub of Horovod over real MPI."""
    horovod = (_HERE / "standin/horovod_stub").glob("*.py")
    mpirun = (_HERE / "standin/mpirun.sh").read_bytes()
    return {
        **{f"usr/local/bin/{name}": mpirun for name in ("mpirun", "mpiexec")},
        **{f"{_PYTHON}/horovod/{path.name}": path.read_bytes() for path in horovod},
        f"{_PYTHON}/horovod/nccl.py": (_HERE / "standin/torch_stub/nccl.py").read_bytes(),
        "etc/openmpi/openmpi-mca-params.conf": MPI_SETTINGS,
        **hardware(),
        **_entry_point("TensorFlow"),
    }


def _oneflow() -> dict[str, bytes]:
    """Files of the stand-in of the image that OneFlow builds wheels in: Python is elsewhere."""
    python = b'#!/bin/sh\nexec /usr/bin/python3 "$@"\n'
    infiniband = {f"usr/local/bin/{name}": text for name, text in stubs.infiniband().items()}
    return {"opt/python/cp37-cp37m/bin/python3": python, **infiniband, **hardware()}


def hardware() -> dict[str, bytes]:
    """Files of an image whose containers are to see GPUs, by path."""
    return {f"usr/local/bin/{name}": content for name, content in stubs.gpus().items()}


def _entry_point(framework: str) -> dict[str, bytes]:
    name = "nvidia_entrypoint.sh"
    script = (_HERE / "standin" / name).read_bytes().replace(b"@FRAMEWORK@", framework.encode())
    return {f"usr/local/bin/{name}": script}


def _config(parts: Sequence[Layer], config: Mapping[str, object]) -> bytes:
    """An image's configuration, whose sha256 is its id."""
    return json.dumps(
        {
            "architecture": _MACHINES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "created": "2020-03-01T00:00:00Z",
            "config": {**config, "Labels": {"virtual.cluster": "stand-in"}},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{part.diff_id}" for part in parts]},
            "history": [{"created_by": "virtual cluster"} for _ in parts],
        }
    ).encode()


def _write_saved(path: Path, config: bytes, parts: Sequence[Layer]) -> None:
    """An image as a file, as `docker load` takes it."""
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{part.digest}/layer.tar" for part in parts]
    listed = json.dumps([{"Config": name, "RepoTags": [GPT], "Layers": names}]).encode()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for part, where in zip(parts, names, strict=True):
            tar.add(part.path, where)
        for where, content in ((name, config), ("manifest.json", listed)):
            member = tarfile.TarInfo(where)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def put(
    place: Place, reference: str, parts: Sequence[Layer], settings: Mapping[str, object]
) -> None:
    """Write an image into the run's storage, as docker-registry 2.8 lays it out."""
    name, _, tag = reference.partition(":")
    root = place.folder / "registry/docker/registry/v2"
    for part in parts:
        _blob(root, part.digest, Path(part.path))
    config = _config(parts, settings)
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, _bytes(root, config), len(config)),
            "layers": [_descriptor(_LAYER, part.digest, part.size) for part in parts],
        }
    ).encode()
    digest = _bytes(root, manifest)
    repository = root / "repositories" / name
    for blob in (*(part.digest for part in parts), hashlib.sha256(config).hexdigest()):
        _link(repository / "_layers/sha256" / blob, blob)
    _link(repository / "_manifests/revisions/sha256" / digest, digest)
    _link(repository / "_manifests/tags" / tag / "current", digest)
    _link(repository / "_manifests/tags" / tag / "index/sha256" / digest, digest)


def _descriptor(kind: str, digest: str, size: int) -> dict[str, object]:
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": size}


def _link(folder: Path, digest: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "link").write_text(f"sha256:{digest}")


def _bytes(root: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    data = root / "blobs/sha256" / digest[:2] / digest / "data"
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(content)
    return digest


def _blob(root: Path, digest: str, path: Path) -> None:
    data = root / "blobs/sha256" / digest[:2] / digest / "data"
    data.parent.mkdir(parents=True, exist_ok=True)
    if not data.exists():
        _linked(path, data)


def _linked(path: Path, to: Path) -> None:
    try:
        os.link(path, to)  # nobody changes it in place
    except OSError:  # the cache lies on another file system
        shutil.copyfile(path, to)
