"""What puts wheels, CentOS's packages and an SSH server into images: the shipped scripts."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import commands
from tests.cluster import wheels
from tests.images.scripts import IMAGES, program, shell

PRESENT, ABSENT = "packaging>=1", "dlperf-is-not-there==2"


class Pip:
    """The pip of this interpreter, installing into a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "site"
        self.files = folder / "downloads"
        self.files.mkdir()

    def wheel(self, project: str, needs: str) -> str:
        """A wheel that needs a distribution; its file name."""
        name, content = wheels.made(project, "1.0+cu112")
        path = self.files / name
        path.write_bytes(content)
        info = f"{project}-1.0+cu112.dist-info/METADATA"
        with zipfile.ZipFile(path) as old:
            held = {name: old.read(name) for name in old.namelist()}
        with zipfile.ZipFile(path, "w") as new:
            for member, text in held.items():
                more = f"Requires-Dist: {needs}\n".encode() if member == info else b""
                if not member.endswith("RECORD"):
                    new.writestr(member, text + more)
            new.writestr(info.replace("METADATA", "RECORD"), "")
        return name

    def install(self, names: str) -> "subprocess.CompletedProcess[str]":
        """The script, told to install these files."""
        env = {"PIP_TARGET": str(self.target), "PYTHONPATH": str(self.target), "PIP_NO_INPUT": "1"}
        argv = (sys.executable, str(self.files), names)
        return shell("scripts/wheels.sh", *argv, **env)


@pytest.fixture
def pip(tmp_path: Path) -> Pip:
    """A pip with nothing installed."""
    return Pip(tmp_path)


def test_wheels_are_installed_as_they_are(pip: Pip) -> None:
    """Several at once; what they need is there already, and nothing else is put in."""
    first, second = pip.wheel("oneflow", PRESENT), pip.wheel("other_one", PRESENT)
    done = pip.install(f"{first} {second}")
    assert done.returncode == 0, done.stderr
    assert (pip.target / "oneflow" / "gang.py").is_file()
    assert not (pip.target / "packaging").exists()


def test_what_a_wheel_lacks_is_named(pip: Pip) -> None:
    """Before the first training does; with where to ask for it."""
    done = pip.install(pip.wheel("other_one", ABSENT))
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("WHEEL: other-one 1.0+cu112 requires dlperf-is-not-there, which is not")
    assert said.endswith("needed it in pip: of image.yaml")


def test_file_that_is_no_wheel_for_this_python_ends_the_build(pip: Pip) -> None:
    """One for another Python, and one that was cut: with the file's name and the Python's."""
    name = pip.wheel("oneflow", PRESENT)
    other = name.replace("py3-none-any", "cp27-cp27m-manylinux1_i686")
    (pip.files / other).write_bytes((pip.files / name).read_bytes())
    (pip.files / name).write_bytes((pip.files / name).read_bytes()[:200])
    for text in (other, name):
        done = pip.install(text)
        assert done.returncode == 1
        assert f"pip does not install {text}; needed a wheel for Python 3." in done.stderr


def test_image_without_wheels_asks_no_pip(tmp_path: Path) -> None:
    """Not even for what is not there."""
    done = shell("scripts/wheels.sh", str(tmp_path / "no-python"), str(tmp_path), "")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Yum:
    """A folder with a yum that keeps what it was told, and the archives that it was told of."""

    def __init__(self, folder: Path, status: int = 0) -> None:
        self.repos, self.bin, self.seen = folder / "repos", folder / "bin", folder / "seen"
        self.repos.mkdir()
        words = f'echo "$@" >{self.seen}; cat {self.repos}/*.repo >>{self.seen} 2>/dev/null; exit'
        program(self.bin / "yum", f"{words} {status}")

    def run(self, mirror: str, packages: str) -> "subprocess.CompletedProcess[str]":
        """The script of the image that is made from CentOS."""
        env = {"YUM_REPOS": str(self.repos), "RPM_KEYS": "/keys"}
        path = f"{self.bin}:/usr/bin:/bin"
        return shell("oneflow-gpt-0.3.5/packages.sh", mirror, packages, PATH=path, **env)


def test_centos_packages_come_from_the_mirror_alone(tmp_path: Path) -> None:
    """Signed as ever; the file that names the mirror is gone afterwards."""
    yum = Yum(tmp_path)
    done = yum.run("http://mirror.example/centos/7.9.2009/", "rdma-core infiniband-diags")
    assert (done.returncode, done.stderr) == (0, "")
    lines = yum.seen.read_text().splitlines()
    assert lines[0] == (
        "install -y --disablerepo=* --enablerepo=dlperf-* rdma-core infiniband-diags"
    )
    for part in ("os", "updates"):
        assert f"[dlperf-{part}]" in lines
        assert f"baseurl=http://mirror.example/centos/7.9.2009/{part}/$basearch/" in lines
    assert lines.count("gpgcheck=1") == 2
    assert lines.count("gpgkey=file:///keys/RPM-GPG-KEY-CentOS-7") == 2
    assert list(yum.repos.iterdir()) == []


def test_centos_without_mirrors_says_what_to_give(tmp_path: Path) -> None:
    """Its own are no more, and yum's own words say that in none."""
    done = Yum(tmp_path, status=1).run("", "rdma-core")
    assert done.returncode == 1
    assert "needed apt.mirror in image.yaml" in done.stderr


def test_mirror_that_has_not_got_it_ends_the_build(tmp_path: Path) -> None:
    """And the file that names it is gone all the same."""
    yum = Yum(tmp_path, status=1)
    assert yum.run("http://mirror.example/c7", "rdma-core").returncode == 1
    assert list(yum.repos.iterdir()) == []


def test_centos_without_packages_asks_no_yum(tmp_path: Path) -> None:
    """Nothing to install is no error."""
    yum = Yum(tmp_path, status=1)
    assert yum.run("http://mirror.example/c7", "").returncode == 0
    assert not yum.seen.exists()


def test_ssh_server_of_an_image_has_no_keys(tmp_path: Path) -> None:
    """Whoever has the image would have them; settings stay, and sshd finds its folder."""
    etc, run, path = tmp_path / "etc", tmp_path / "run" / "sshd", tmp_path / "bin"
    etc.mkdir()
    for name in ("ssh_host_rsa_key", "ssh_host_rsa_key.pub", "sshd_config", "ssh_config"):
        (etc / name).write_text("")
    for name in ("sshd", "ssh"):
        program(path / name, "exit 0")
    env = {"ETC_SSH": str(etc), "RUN_SSHD": str(run), "PATH": f"{path}:/usr/bin:/bin"}
    for _ in range(2):
        done = shell("ngc-tensorflow-20.03/sshd.sh", **env)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(path.name for path in etc.iterdir()) == ["ssh_config", "sshd_config"]
        assert run.is_dir()
        assert run.stat().st_mode & 0o777 == 0o755


def test_image_without_an_ssh_server_says_so(tmp_path: Path) -> None:
    """The packages were left out of a copy."""
    for name in ("sh", "mkdir", "chmod", "rm"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    script = (IMAGES / "ngc-tensorflow-20.03/sshd.sh").read_text()
    (tmp_path / "sshd.sh").write_text(script.replace(":/usr/sbin:/sbin", ""))
    done = commands.run(
        ["/bin/sh", str(tmp_path / "sshd.sh")],
        env={"PATH": str(tmp_path), "ETC_SSH": str(tmp_path), "RUN_SSHD": str(tmp_path / "run")},
    )
    assert done.returncode == 1
    assert "SSHD: sshd is not there; needed openssh-server" in done.stderr
