"""Bases of images for the virtual cluster that hold the libraries of upstream's real programs.

The shipped Dockerfiles build on them what they build on NVIDIA's; only GPUs are made up.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import Cluster, Place, downloads, layers, registry
from tests.cluster.place import WEB
from tests.real import environments, sources

TAG = "real"
_PACKAGES = "usr/lib/python3/dist-packages"
_COMMON = {"Cmd": ["/bin/bash"], "WorkingDir": "/workspace"}
_IMAGE = """\
name: {name}
base: nvcr.io/{base}:{tag}
python: {python}
code: {code}
infiniband: none
source: {{url: "http://{web}/git/{repository}", commit: {commit}, path: {path}}}
"""


def pytorch(place: Place) -> None:
    """PyTorch and NumPy as they lie on this machine, and stand-ins for the hardware."""
    (packages,) = environments.today().parent.glob("lib/python3*/site-packages")
    shims = (environments.SHIMS / "hooks", environments.SHIMS / "pytorch")
    parts = (
        layers.build_debian(place),
        layers.build_torch(place),
        layers.build_folders(
            place,
            "numpy",
            {f"{_PACKAGES}/{name}": packages / name for name in ("numpy", "numpy.libs")},
        ),
        layers.build_files(
            place,
            "real",
            {
                **_shims(_PACKAGES, (*shims, sources.dllogger())),
                f"{_PACKAGES}/real.pth": b"import torch_on_cpu\n",
                **registry.hardware(),
            },
        ),
    )
    registry.put(place, f"{registry.PYTORCH}:{TAG}", parts, {**_COMMON, **registry.SETTINGS})


def tensorflow(place: Place, python: str) -> None:
    """TensorFlow, Horovod and their Python at the paths that they have on this machine."""
    programs = environments.of_2020(python)
    whole = Path(python).resolve().parents[1]
    parts = (
        layers.build_debian(place, *layers.MPI),
        layers.build_folders(place, "python", {str(whole).lstrip("/"): whole}),
        layers.build_folders(
            place, "tensorflow", {str(programs.parent).lstrip("/"): programs.parent}
        ),
        layers.build_files(
            place,
            "real",
            {
                "etc/openmpi/openmpi-mca-params.conf": registry.MPI_SETTINGS,
                **_found_there(programs),
                **registry.hardware(),
            },
        ),
    )
    path, *others = registry.SETTINGS["Env"]
    first = path.replace("PATH=", f"PATH={programs}:")
    registry.put(place, f"{registry.TENSORFLOW}:{TAG}", parts, {**_COMMON, "Env": [first, *others]})


def image(cluster: Cluster, folder: Path, name: str, base: str) -> None:
    """Write a shipped image's folder for such a base, its code that of the pinned commit."""
    pinned = sources.pinned(name)
    repository = f"{name}.git"
    bare = cluster.folder / "www/git" / repository
    commit = _served(bare, pinned, sources.program(name))
    shipped = sources.shipped(name)
    text = _IMAGE.format(
        name=name,
        base=base,
        tag=TAG,
        python=shipped.python,
        code=shipped.code,
        web=WEB,
        repository=repository,
        commit=commit,
        path=pinned.path,
    )
    (folder / "images" / name / "image.yaml").write_text(text)


def _served(bare: Path, source: sources.Source, code: Path) -> str:
    """Make a repository of the program alone, and see that git knows it for upstream's folder.

    Not the whole of upstream's commit, of which a mirror may lack what is large.
    """
    files = {f"{source.path}/{path.relative_to(code)}": path for path in _files(code)}
    commit = downloads.repository(bare, files)
    trees = {
        sources.git(where, "rev-parse", f"{what}:{source.path}")
        for where, what in ((bare, commit), (sources.repository(source), source.commit))
    }
    assert len(trees) == 1, trees
    return commit


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _shims(where: str, folders: Sequence[Path]) -> Mapping[str, bytes]:
    return {
        f"{where}/{path.relative_to(folder)}": path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
    }


def _found_there(programs: Path) -> Mapping[str, bytes]:
    """What real.pth of that environment names, at the paths that it names."""
    (listed,) = programs.parent.glob("lib/python3*/site-packages/real.pth")
    lines = [Path(line) for line in listed.read_text().splitlines() if line.startswith("/")]
    return {
        path: content
        for folder in lines
        for path, content in _shims(str(folder).lstrip("/"), (folder,)).items()
    }
