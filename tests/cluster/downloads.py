"""What a run's web server hands out: the benchmark's code by git, a stub OFED tarball."""

import hashlib
import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import stubs
from tests.cluster.place import WEB

_HERE = Path(__file__).parent
CODE_PATH = "PyTorch/Classification/ConvNets"
OFED_VERSION = "4.9-0.1.7.0"
_OFED = f"MLNX_OFED_LINUX-{OFED_VERSION}-ubuntu18.04-x86_64"


@dataclass(frozen=True, slots=True)
class Downloads:
    """Addresses, as nodes and images know them."""

    code_url: str
    code_commit: str
    code_path: str
    ofed_url: str
    ofed_version: str
    ofed_sha256: str


def write(www: Path) -> Downloads:
    """Fill the web server's folder."""
    (www / "ofed").mkdir(parents=True)
    tarball = www / "ofed" / f"{_OFED}.tar"
    tarball.write_bytes(_ofed())
    return Downloads(
        code_url=f"http://{WEB}/git/DeepLearningExamples.git",
        code_commit=_repository(www / "git" / "DeepLearningExamples.git"),
        code_path=CODE_PATH,
        ofed_url=f"http://{WEB}/ofed/{tarball.name}",
        ofed_version=OFED_VERSION,
        ofed_sha256=hashlib.sha256(tarball.read_bytes()).hexdigest(),
    )


def _repository(bare: Path) -> str:
    """Make the repository that holds the benchmark's code; its one commit."""
    bare.mkdir(parents=True)
    work = bare.with_suffix(".work")
    code = work / CODE_PATH
    code.mkdir(parents=True)
    for name in ("main.py", "multiproc.py"):
        (code / name).write_bytes((_HERE / "standin" / name).read_bytes())
    (code / "requirements.txt").write_text("# the stand-in needs nothing\n")
    _git(bare, work, "init", "--quiet", "--bare", "--initial-branch=master")
    # As GitHub does: a client may ask for any commit by its hash.
    _git(bare, work, "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(bare, work, "add", "--all")
    _git(bare, work, "commit", "--quiet", "--message", "Stand-in of NVIDIA's ConvNets")
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
