"""What a run's web server hands out: code by git, a stub OFED tarball, wheels, an image's file."""

import hashlib
import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import registry, stubs, wheels
from tests.cluster.place import WEB, Place

_HERE = Path(__file__).parent
_STANDIN = _HERE / "standin"
_TABLES = _HERE.parent / "samples" / "options"
CODE_PATH = "PyTorch/Classification/ConvNets"
OFED_VERSION = "4.9-0.1.7.0"
_OFED = f"MLNX_OFED_LINUX-{OFED_VERSION}-ubuntu18.04-x86_64"


@dataclass(frozen=True, slots=True)
class Downloads:
    """Addresses, as nodes and images know them.

    Args:
        code_url: NVIDIA's repository; ``oneflow_url`` OneFlow's.
        wheel_019, wheel_020, wheel_gpt: of OneFlow, by the image that they are for.
        archive_url: the base of OneFlow's GPT, as `docker save` writes it.
    """

    code_url: str
    code_commit: str
    code_path: str
    ofed_url: str
    ofed_version: str
    ofed_sha256: str
    oneflow_url: str
    oneflow_commit: str
    wheel_019: str
    wheel_020: str
    wheel_gpt: str
    archive_url: str


def write(place: Place) -> Downloads:
    """Fill the web server's folder."""
    www = place.folder / "www"
    (www / "ofed").mkdir(parents=True)
    tarball = www / "ofed" / f"{_OFED}.tar"
    tarball.write_bytes(_ofed())
    archive = www / "oneflow-manylinux2014-cuda11.2-0.1.tar"
    registry.save(place, archive)
    return Downloads(
        code_url=f"http://{WEB}/git/DeepLearningExamples.git",
        code_commit=repository(www / "git" / "DeepLearningExamples.git", _nvidia()),
        code_path=CODE_PATH,
        ofed_url=f"http://{WEB}/ofed/{tarball.name}",
        ofed_version=OFED_VERSION,
        ofed_sha256=hashlib.sha256(tarball.read_bytes()).hexdigest(),
        oneflow_url=f"http://{WEB}/git/OneFlow-Benchmark.git",
        oneflow_commit=repository(www / "git" / "OneFlow-Benchmark.git", _oneflow()),
        wheel_019=_wheel(www, "oneflow_cu102", "0.1.9"),
        wheel_020=_wheel(www, "oneflow_cu102", "0.2.0"),
        wheel_gpt=_wheel(www, "oneflow", "0.3.5+cu112.git.0"),
        archive_url=f"http://{WEB}/{archive.name}",
    )


def programs() -> dict[str, Path]:
    """The stand-ins of all benchmarks, by path in upstream's repositories."""
    return {**_nvidia(), **_oneflow()}


def _nvidia() -> dict[str, Path]:
    """By path in the repository, the file of ours that stands in."""
    tensorflow = "TensorFlow/Classification/ConvNets"
    return {
        f"{CODE_PATH}/main.py": _STANDIN / "main.py",
        f"{CODE_PATH}/multiproc.py": _STANDIN / "multiproc.py",
        **_options(CODE_PATH, {"options": "ngc_pytorch_rn50@5cc03ca"}),
        f"{tensorflow}/main.py": _STANDIN / "tf_main.py",
        **_options(tensorflow, {"options": "ngc_tensorflow_rn50@fed7ba99"}),
    }


def _oneflow() -> dict[str, Path]:
    cnns, bert, gpt = "Classification/cnns", "LanguageModeling/BERT", "LanguageModeling/GPT"
    return {
        f"{cnns}/of_cnn_train_val.py": _STANDIN / "of_cnn_train_val.py",
        **_options(cnns, _releases("oneflow_rn50")),
        f"{bert}/run_pretraining.py": _STANDIN / "run_pretraining.py",
        **_options(bert, _releases("oneflow_bert")),
        f"{gpt}/setup.py": _STANDIN / "oneflow_gpt/setup.py",
        **{
            f"{gpt}/oneflow_gpt/{name}.py": _STANDIN / f"oneflow_gpt/{name}.py"
            for name in ("__init__", "config", "training")
        },
        **_options(f"{gpt}/oneflow_gpt", {"options": "oneflow_gpt@8da0250"}),
    }


def _releases(program: str) -> dict[str, str]:
    """By file name, the tables of the commits that the two releases are measured with."""
    return {"options-0.1.9": f"{program}@637bb9c", "options-0.2.0": f"{program}@638d8f4"}


def _options(folder: str, tables: Mapping[str, str]) -> dict[str, Path]:
    """What a stand-in takes its options from: the upstream program's own, as they were dumped."""
    found = {f"{folder}/{name}.csv": _TABLES / f"{table}.csv" for name, table in tables.items()}
    return {**found, f"{folder}/options.py": _STANDIN / "options.py"}


def _wheel(www: Path, project: str, version: str) -> str:
    """The URL of a stub wheel, its + written as URLs write it."""
    name, content = wheels.made(project, version)
    (www / "wheels").mkdir(exist_ok=True)
    (www / "wheels" / name).write_bytes(content)
    return f"http://{WEB}/wheels/{name.replace('+', '%2B')}"


def repository(bare: Path, files: Mapping[str, Path]) -> str:
    """Make a repository that holds these files, by their paths in it; its one commit."""
    bare.mkdir(parents=True)
    work = bare.with_suffix(".work")
    work.mkdir()
    for path, source in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, work / path)  # with its mode, of which git keeps a part
    _git(bare, work, "init", "--quiet", "--bare", "--initial-branch=master")
    # As GitHub does: a client may ask for any commit by its hash.
    _git(bare, work, "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(bare, work, "add", "--all", "--force")
    _git(bare, work, "commit", "--quiet", "--message", "Stand-ins of benchmarks")
    return _git(bare, work, "rev-parse", "HEAD")


def _git(bare: Path, work: Path, *words: str) -> str:
    # Nothing of the user's own, and no clock: the same code is the same commit on every machine.
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": str(bare),
        **({} if words[0] == "init" else {"GIT_WORK_TREE": str(work)}),
        **{f"GIT_{who}_NAME": "virtual cluster" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "testbed@example.invalid" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": "2020-08-21T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    }
    done = subprocess.run(
        ["git", *words], env=env, cwd=work, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _ofed() -> bytes:
    """The stub tarball, equal byte for byte wherever it is made."""
    files = {f"stubs/{name}": content for name, content in stubs.infiniband().items()}
    installer = (_HERE / "stubs" / "mlnxofedinstall").read_bytes()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted({"mlnxofedinstall": installer, **files}.items()):
            member = tarfile.TarInfo(f"{_OFED}/{name}")
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
