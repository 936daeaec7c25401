"""The registry of a run: stand-in images in the storage of Debian's docker-registry."""

import hashlib
import json
import os
import platform
import shutil
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
NAME = "nvidia/pytorch"
SETTINGS = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}


def fill(place: Place) -> None:
    """Put the stand-ins of nvcr.io/nvidia/pytorch into the run's registry."""
    base = layers.debian(place)
    old = {
        "Entrypoint": ["/usr/local/bin/nvidia_entrypoint.sh"],
        "Cmd": ["/bin/bash"],
        "WorkingDir": "/workspace",
        **SETTINGS,
    }
    store = place.folder / "registry"
    _put(store, "20.03-py3", (base, layers.files(place, "stand-in", _standin())), old)
    new = {"Cmd": ["/bin/bash"], "WorkingDir": "/workspace", **SETTINGS}
    _put(store, "25.01-py3", (base, layers.torch(place)), new)


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


def _standin() -> dict[str, bytes]:
    """Files of the stand-in of 20.03, by path: stubs of torch and nvidia-smi, the entry point."""
    site = "usr/lib/python3/dist-packages/torch"
    torch = {path.name: path.read_bytes() for path in (_HERE / "standin/torch_stub").glob("*.py")}
    smi = stubs.gpus()
    return {
        **{f"{site}/{name}": content for name, content in torch.items()},
        **{f"usr/local/bin/{name}": content for name, content in smi.items()},
        "usr/local/bin/nvidia_entrypoint.sh": (_HERE / "standin/nvidia_entrypoint.sh").read_bytes(),
    }


def _put(store: Path, tag: str, parts: Sequence[Layer], config: Mapping[str, object]) -> None:
    """Write an image into the storage, as docker-registry 2.8 lays it out."""
    root = store / "docker/registry/v2"
    for part in parts:
        _blob(root, part.digest, Path(part.path))
    config_bytes = json.dumps(
        {
            "architecture": _MACHINES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "created": "2020-03-01T00:00:00Z",
            "config": {**config, "Labels": {"virtual.cluster": "stand-in"}},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{part.diff_id}" for part in parts]},
            "history": [{"created_by": "virtual cluster"} for _ in parts],
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, _bytes(root, config_bytes), len(config_bytes)),
            "layers": [_descriptor(_LAYER, part.digest, part.size) for part in parts],
        }
    ).encode()
    digest = _bytes(root, manifest)
    repository = root / "repositories" / NAME
    for each in (*(part.digest for part in parts), hashlib.sha256(config_bytes).hexdigest()):
        _link(repository / "_layers/sha256" / each, each)
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
    if data.exists():
        return
    try:
        os.link(path, data)  # the registry never changes a blob in place
    except OSError:  # the cache lies on another file system
        shutil.copyfile(path, data)
