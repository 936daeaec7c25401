"""What puts InfiniBand and packages into an image: the shipped scripts, on this machine."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.images.scripts import program, shell

# What the installer printed in the container of the published runs.
# Source: DLPerf, NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/README.md.
INSTALLING = """\
Installing srptools-41mlnx1...
Installing mlnx-ethtool-5.4...
Installing mlnx-iproute2-5.4.0...
"""
NEOHOST = """\
Installing neohost-backend-1.5.0...
Failed to install neohost-backend DEB
Collecting debug info...
See /tmp/MLNX_OFED_LINUX.24525.logs/neohost-backend.debinstall.log
"""
TOOLS = ("ibstat", "ibv_devinfo", "ofed_info")


class Machine:
    """A folder for programs of its own and a tarball, in which OFED can be installed.

    Its installer prints what it is told to, puts the tools of OFED into the folder and exits with
    the status it is told to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()

    def tarball(self, says: str, status: int, *, tools: tuple[str, ...] = TOOLS) -> Path:
        """A tarball whose installer does so."""
        source = self.folder / "MLNX_OFED_LINUX-4.9-0.1.7.0-ubuntu18.04-x86_64"
        lines = [f'echo "$@" >{self.folder}/argv', f"cat <<'END'\n{says}END"]
        for tool in tools:
            body = "#!/bin/sh\\necho MLNX_OFED_LINUX-4.9-0.1.7.0:\\n"
            lines += [f"printf '{body}' >{self.bin}/{tool}", f"chmod +x {self.bin}/{tool}"]
        program(source / "mlnxofedinstall", "\n".join([*lines, f"exit {status}"]))
        path = self.folder / "ofed.tar"
        with tarfile.open(path, "w") as archive:
            archive.add(source, source.name)
        return path

    def run(self, mode: str, tarball: Path | str = "") -> subprocess.CompletedProcess[str]:
        """The script on this machine."""
        path = f"{self.bin}:/usr/bin:/bin"
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        return shell(
            "scripts/infiniband.sh",
            mode,
            str(tarball),
            "4.9-0.1.7.0",
            PATH=path,
            TMPDIR=str(temporary),
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without OFED."""
    return Machine(tmp_path)


@pytest.mark.parametrize(("says", "status"), [(INSTALLING, 0), (INSTALLING + NEOHOST, 1)])
def test_ofed_is_installed_as_the_published_runs_did(
    machine: Machine, says: str, status: int
) -> None:
    """N07: with their switches; neohost-backend's failure is passed over, whatever the status."""
    done = machine.run("mlnx_ofed", machine.tarball(says, status))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == says
    argv = (machine.folder / "argv").read_text()
    assert argv == "--user-space-only --without-fw-update --all --force\n"
    assert list((machine.folder / "tmp").iterdir()) == []


def test_any_other_package_that_fails_is_named_with_its_log(machine: Machine) -> None:
    """N07: neohost's failure beside it hides nothing; the last lines say why."""
    log = machine.folder / "libibverbs.debinstall.log"
    log.write_text("dpkg: dependency problems prevent configuration of libibverbs\n")
    says = f"Failed to install libibverbs DEB\nCollecting debug info...\nSee {log}\n"
    done = machine.run("mlnx_ofed", machine.tarball(NEOHOST + says, 1))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "dpkg: dependency problems prevent configuration of libibverbs",
        "OFED-INSTALL: package libibverbs failed, mlnxofedinstall's exit code is 1",
    ]


@pytest.mark.parametrize(
    ("says", "status", "words"),
    [
        ("Failed to install libibverbs DEB\n", 0, "package libibverbs failed"),
        (NEOHOST + "Failed to build mlnx-nvme DEB\n", 1, "package mlnx-nvme failed"),
        ("Error: no space left\n", 28, "exit code is 28, and it names no package that failed"),
    ],
)
def test_installer_that_fails_otherwise_is_believed(
    machine: Machine, says: str, status: int, words: str
) -> None:
    """Without a log of the package, the end of what the installer printed is shown."""
    done = machine.run("mlnx_ofed", machine.tarball(says, status))
    assert done.returncode == 1
    *shown, verdict = done.stderr.splitlines()
    assert verdict.startswith("OFED-INSTALL: ")
    assert words in verdict
    assert shown == says.splitlines()


@pytest.mark.parametrize("lacking", TOOLS)
def test_ofed_without_its_tools_is_refused(machine: Machine, lacking: str) -> None:
    """An installer that ends well and leaves no ibstat, ibv_devinfo or ofed_info did not."""
    tools = tuple(tool for tool in TOOLS if tool != lacking)
    done = machine.run("mlnx_ofed", machine.tarball(INSTALLING, 0, tools=tools))
    assert done.returncode == 1
    assert f"OFED-INSTALL: {lacking} is not there afterwards" in done.stderr


def test_another_version_of_ofed_is_refused(machine: Machine) -> None:
    """What ofed_info says counts, not the name of the tarball."""
    tarball = machine.tarball(INSTALLING, 0, tools=TOOLS[:2])
    program(machine.bin / "ofed_info", "echo MLNX_OFED_LINUX-4.9-0.1.7.0.1:")
    done = machine.run("mlnx_ofed", tarball)
    assert done.returncode == 1
    assert "ofed_info -s says MLNX_OFED_LINUX-4.9-0.1.7.0.1:; needed" in done.stderr
    program(machine.bin / "ofed_info", "exit 3")
    assert "OFED-INSTALL: ofed_info -s fails" in machine.run("mlnx_ofed", tarball).stderr


def test_file_that_is_no_tarball_of_ofed_is_refused(machine: Machine) -> None:
    """A page of HTML, and an archive without the installer."""
    page = machine.folder / "page.tar"
    page.write_text("<html>404</html>")
    assert "page.tar cannot be unpacked" in machine.run("mlnx_ofed", page).stderr
    with tarfile.open(page, "w") as archive:
        archive.add(machine.bin, "bin")
    assert "page.tar holds no mlnxofedinstall" in machine.run("mlnx_ofed", page).stderr


def test_lighter_ways_need_no_tarball(machine: Machine) -> None:
    """The distribution's user space is judged by its tools; with none, nothing is asked."""
    assert machine.run("none").returncode == 0
    assert "OFED-INSTALL: ibstat is not there" in machine.run("distribution").stderr
    for tool in TOOLS[:2]:
        program(machine.bin / tool, "exit 1")  # as they do where there is no HCA
    assert machine.run("distribution").returncode == 0
    assert "needed mlnx_ofed, distribution or none" in machine.run("ofed").stderr


class Distribution:
    """What a distribution says of itself, and an apt-get that notes what it was asked to do.

    It answers by the real apt-config, so that what is written for apt is read by apt.
    """

    def __init__(self, folder: Path) -> None:
        self.etc, self.log = folder / "etc", folder / "log"
        self.config = folder / "work" / "apt.conf"
        self.config.parent.mkdir()
        (self.etc / "sources.list.d").mkdir(parents=True)
        (self.etc / "sources.list").write_text("deb http://archive.ubuntu.com/ubuntu bionic main\n")
        self.release = folder / "os-release"
        self.release.write_text("ID=ubuntu\nVERSION_CODENAME=bionic\n")
        self.bin = folder / "bin"
        program(self.bin / "apt-get", f'echo "$@" >>{self.log}\napt-config dump >{folder}/dump')
        self.dump = folder / "dump"

    def run(self, mirror: str, packages: str) -> subprocess.CompletedProcess[str]:
        """The script on this distribution."""
        env = {"ETC_APT": str(self.etc), "OS_RELEASE": str(self.release)}
        path = f"{self.bin}:{os.environ['PATH']}"
        return shell(
            "scripts/packages.sh", mirror, packages, PATH=path, APT_CONFIG=str(self.config), **env
        )

    def sources(self) -> tuple[str, list[str]]:
        """The sources.list that apt was told to read, and the names of what lies beside it."""
        told = dict(line.rstrip(";").split(" ", 1) for line in self.dump.read_text().splitlines())
        parts = Path(told["Dir::Etc::sourceparts"].strip('"'))
        listed = Path(told["Dir::Etc::sourcelist"].strip('"')).read_text()
        return listed, sorted(path.name for path in parts.iterdir())


@pytest.fixture
def distribution(tmp_path: Path) -> Distribution:
    """Ubuntu 18.04, as the NGC image of the published runs has it."""
    return Distribution(tmp_path)


def test_packages_are_installed_after_an_update(distribution: Distribution) -> None:
    """The seed installs first and then updates, which a fresh image cannot do."""
    done = distribution.run("", "git tk")
    assert done.returncode == 0, done.stderr
    assert distribution.log.read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends git tk",
    ]


def test_archives_of_nvidia_are_not_asked(distribution: Distribution) -> None:
    """Their old key was withdrawn, which would end every update; the others stay."""
    folder = distribution.etc / "sources.list.d"
    cuda = "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu1804/x86_64 /\n"
    (folder / "cuda.list").write_text(cuda)
    (folder / "ours.list").write_text("deb http://ours.example/ubuntu bionic main\n")
    assert distribution.run("", "git").returncode == 0
    listed, parts = distribution.sources()
    assert listed == "deb http://archive.ubuntu.com/ubuntu bionic main\n"
    assert parts == ["ours.list"]


def test_mirror_takes_the_place_of_all_archives(distribution: Distribution) -> None:
    """With the release that the image says it is; for Debian with its own components."""
    assert distribution.run("http://mirror.example/ubuntu", "git").returncode == 0
    components = "main restricted universe multiverse"
    assert distribution.sources() == (
        "".join(
            f"deb http://mirror.example/ubuntu {suite} {components}\n"
            for suite in ("bionic", "bionic-updates", "bionic-security")
        ),
        [],
    )
    distribution.release.write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    assert distribution.run("http://mirror.example/debian", "git").returncode == 0
    assert distribution.sources()[0] == (
        "deb http://mirror.example/debian bookworm main contrib non-free\n"
        "deb http://mirror.example/debian bookworm-updates main contrib non-free\n"
    )


def test_mirror_for_an_unknown_release_is_refused(distribution: Distribution) -> None:
    """Nothing is guessed: packages of another release would be worse than none."""
    distribution.release.write_text("ID=ubuntu\n")
    done = distribution.run("http://mirror.example/ubuntu", "git")
    assert done.returncode == 1
    assert "names no release" in done.stderr
    assert not distribution.log.exists()


def test_without_packages_apt_is_not_asked(distribution: Distribution) -> None:
    """An image that needs none is built without any archive."""
    assert distribution.run("http://mirror.example/ubuntu", "").returncode == 0
    assert not distribution.log.exists()
    assert distribution.config.read_text() == ""


def test_package_that_cannot_be_had_ends_the_build(distribution: Distribution) -> None:
    """apt's own exit code and words."""
    program(distribution.bin / "apt-get", "echo E: Unable to locate package >&2; exit 100")
    done = distribution.run("", "git")
    assert (done.returncode, done.stderr) == (100, "E: Unable to locate package\n")
