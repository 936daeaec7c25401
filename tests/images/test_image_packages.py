"""The shipped scripts that put InfiniBand, packages, wheels and an SSH server into images."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests import commands
from tests.cluster import wheels
from tests.images.scripts import IMAGES, program, shell

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
    """A folder for programs of its own and a tarball, in which OFED can be installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        (folder / "tmp").mkdir()

    def tarball(self, says: str, status: int, *, tools: tuple[str, ...] = TOOLS) -> Path:
        """Return a tarball whose installer prints this, leaves these tools and exits so."""
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
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "TMPDIR": str(self.folder / "tmp")}
        return shell("scripts/infiniband.sh", mode, str(tarball), "4.9-0.1.7.0", **env)

    def refusal(self, mode: str, tarball: Path | str = "") -> str:
        """Run the script, which must fail; return its last line."""
        done = self.run(mode, tarball)
        assert done.returncode == 1
        return done.stderr.splitlines()[-1]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(("says", "status"), [(INSTALLING, 0), (INSTALLING + NEOHOST, 1)])
def test_ofed_is_installed_as_in_the_published_runs(
    machine: Machine, says: str, status: int
) -> None:
    """N07: with their switches; neohost-backend's failure is ignored, whatever the status."""
    done = machine.run("mlnx_ofed", machine.tarball(says, status))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == says
    argv = (machine.folder / "argv").read_text()
    assert argv == "--user-space-only --without-fw-update --all --force\n"
    assert list((machine.folder / "tmp").iterdir()) == []


def test_another_package_that_fails_is_named_with_its_log(machine: Machine) -> None:
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
def test_without_a_log_of_a_package_the_installers_output_is_shown(
    machine: Machine, says: str, status: int, words: str
) -> None:
    done = machine.run("mlnx_ofed", machine.tarball(says, status))
    assert done.returncode == 1
    *shown, verdict = done.stderr.splitlines()
    assert verdict.startswith("OFED-INSTALL: ")
    assert words in verdict
    assert shown == says.splitlines()


@pytest.mark.parametrize("lacking", TOOLS)
def test_an_installation_without_its_tools_is_refused(machine: Machine, lacking: str) -> None:
    tools = tuple(tool for tool in TOOLS if tool != lacking)
    refusal = machine.refusal("mlnx_ofed", machine.tarball(INSTALLING, 0, tools=tools))
    assert f"OFED-INSTALL: {lacking} is not there afterwards" in refusal


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (
            "echo MLNX_OFED_LINUX-4.9-0.1.7.0.1:",
            "ofed_info -s says MLNX_OFED_LINUX-4.9-0.1.7.0.1:; needed",
        ),
        ("exit 3", "OFED-INSTALL: ofed_info -s fails"),
    ],
)
def test_the_version_is_that_of_ofed_info_and_not_of_the_tarballs_name(
    machine: Machine, info: str, words: str
) -> None:
    tarball = machine.tarball(INSTALLING, 0, tools=TOOLS[:2])
    program(machine.bin / "ofed_info", info)
    assert words in machine.refusal("mlnx_ofed", tarball)


def test_a_file_that_is_no_tarball_of_ofed_is_refused(machine: Machine) -> None:
    """A page of HTML, and an archive without the installer."""
    page = machine.folder / "page.tar"
    page.write_text("<html>404</html>")
    assert "page.tar cannot be unpacked" in machine.refusal("mlnx_ofed", page)
    with tarfile.open(page, "w") as archive:
        archive.add(machine.bin, "bin")
    assert "page.tar holds no mlnxofedinstall" in machine.refusal("mlnx_ofed", page)


def test_other_user_space_needs_no_tarball(machine: Machine) -> None:
    """The distribution's is checked by its tools; with none, nothing is checked."""
    assert machine.run("none").returncode == 0
    assert "OFED-INSTALL: ibstat is not there" in machine.refusal("distribution")
    for tool in TOOLS[:2]:
        program(machine.bin / tool, "exit 1")  # as they do where there is no HCA
    assert machine.run("distribution").returncode == 0
    assert "needed mlnx_ofed, distribution or none" in machine.refusal("ofed")


class Distribution:
    """Ubuntu 18.04, as the image of the published runs, with an apt-get that records its words.

    It answers by the real apt-config, so that apt itself reads the written configuration.
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
        env = {"ETC_APT": str(self.etc), "OS_RELEASE": str(self.release)}
        path = f"{self.bin}:{os.environ['PATH']}"
        return shell(
            "scripts/packages.sh", mirror, packages, PATH=path, APT_CONFIG=str(self.config), **env
        )

    def sources(self) -> tuple[str, list[str]]:
        """Return the sources.list that apt reads, and the names of the files beside it."""
        told = dict(line.rstrip(";").split(" ", 1) for line in self.dump.read_text().splitlines())
        parts = Path(told["Dir::Etc::sourceparts"].strip('"'))
        listed = Path(told["Dir::Etc::sourcelist"].strip('"')).read_text()
        return listed, sorted(path.name for path in parts.iterdir())


@pytest.fixture
def distribution(tmp_path: Path) -> Distribution:
    return Distribution(tmp_path)


def test_packages_are_installed_after_an_update_without_nvidias_archive(
    distribution: Distribution,
) -> None:
    """Its old key was withdrawn, which would end every update; other archives stay."""
    folder = distribution.etc / "sources.list.d"
    cuda = "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu1804/x86_64 /\n"
    (folder / "cuda.list").write_text(cuda)
    (folder / "ours.list").write_text("deb http://ours.example/ubuntu bionic main\n")
    assert distribution.run("", "git tk").returncode == 0
    assert distribution.log.read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends git tk",
    ]
    listed, parts = distribution.sources()
    assert listed == "deb http://archive.ubuntu.com/ubuntu bionic main\n"
    assert parts == ["ours.list"]


@pytest.mark.parametrize(
    ("system", "release", "suites", "components"),
    [
        ("ubuntu", "bionic", ("", "-updates", "-security"), "main restricted universe multiverse"),
        ("debian", "bookworm", ("", "-updates"), "main contrib non-free"),
    ],
)
def test_a_mirror_replaces_all_archives(
    distribution: Distribution, system: str, release: str, suites: tuple[str, ...], components: str
) -> None:
    """For the release that the image names."""
    distribution.release.write_text(f"ID={system}\nVERSION_CODENAME={release}\n")
    assert distribution.run(f"http://mirror.example/{system}", "git").returncode == 0
    lines = (
        f"deb http://mirror.example/{system} {release}{suite} {components}" for suite in suites
    )
    assert distribution.sources() == ("\n".join([*lines, ""]), [])


def test_a_mirror_for_an_unknown_release_is_refused(distribution: Distribution) -> None:
    distribution.release.write_text("ID=ubuntu\n")
    done = distribution.run("http://mirror.example/ubuntu", "git")
    assert done.returncode == 1
    assert "names no release" in done.stderr
    assert not distribution.log.exists()


def test_without_packages_apt_is_not_asked(distribution: Distribution) -> None:
    assert distribution.run("http://mirror.example/ubuntu", "").returncode == 0
    assert not distribution.log.exists()
    assert distribution.config.read_text() == ""


def test_a_package_that_apt_does_not_find_ends_the_build(distribution: Distribution) -> None:
    program(distribution.bin / "apt-get", "echo E: Unable to locate package >&2; exit 100")
    done = distribution.run("", "git")
    assert (done.returncode, done.stderr) == (100, "E: Unable to locate package\n")


PRESENT, ABSENT = "packaging>=1", "dlperf-is-not-there==2"


class Pip:
    """The pip of this interpreter, which installs into a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / "site"
        self.files = folder / "downloads"
        self.files.mkdir()

    def wheel(self, project: str, needs: str) -> str:
        """Make a wheel that needs a distribution; return its file name."""
        name, content = wheels.made(project, "1.0+cu112")
        path = self.files / name
        path.write_bytes(content)
        info = f"{project}-1.0+cu112.dist-info/METADATA"
        with zipfile.ZipFile(path) as old:
            held = {name: old.read(name) for name in old.namelist()}
        held[info] += f"Requires-Dist: {needs}\n".encode()
        held[info.replace("METADATA", "RECORD")] = b""
        with zipfile.ZipFile(path, "w") as new:
            for member, text in held.items():
                new.writestr(member, text)
        return name

    def install(self, names: str) -> "subprocess.CompletedProcess[str]":
        env = {"PIP_TARGET": str(self.target), "PYTHONPATH": str(self.target), "PIP_NO_INPUT": "1"}
        return shell("scripts/wheels.sh", sys.executable, str(self.files), names, **env)


@pytest.fixture
def pip(tmp_path: Path) -> Pip:
    return Pip(tmp_path)


def test_wheels_are_installed_alone(pip: Pip) -> None:
    """Packages that the base already has are not installed again."""
    first, second = pip.wheel("oneflow", PRESENT), pip.wheel("other_one", PRESENT)
    done = pip.install(f"{first} {second}")
    assert done.returncode == 0, done.stderr
    assert (pip.target / "oneflow" / "gang.py").is_file()
    assert not (pip.target / "packaging").exists()


def test_a_distribution_that_a_wheel_lacks_is_named(pip: Pip) -> None:
    done = pip.install(pip.wheel("other_one", ABSENT))
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("WHEEL: other-one 1.0+cu112 requires dlperf-is-not-there, which is not")
    assert said.endswith("needed it in pip: of image.yaml")


def test_a_file_that_is_no_wheel_for_this_python_ends_the_build(pip: Pip) -> None:
    """A wheel for another Python, and one that was cut."""
    name = pip.wheel("oneflow", PRESENT)
    other = name.replace("py3-none-any", "cp27-cp27m-manylinux1_i686")
    (pip.files / other).write_bytes((pip.files / name).read_bytes())
    (pip.files / name).write_bytes((pip.files / name).read_bytes()[:200])
    for text in (other, name):
        done = pip.install(text)
        assert done.returncode == 1
        assert f"pip does not install {text}; needed a wheel for Python 3." in done.stderr


def test_an_image_without_wheels_does_not_run_pip(tmp_path: Path) -> None:
    done = shell("scripts/wheels.sh", str(tmp_path / "no-python"), str(tmp_path), "")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Yum:
    """A folder with a yum that records its words and the archives that it was given."""

    def __init__(self, folder: Path, status: int = 0) -> None:
        self.repos, self.bin, self.seen = folder / "repos", folder / "bin", folder / "seen"
        self.repos.mkdir()
        words = f'echo "$@" >{self.seen}; cat {self.repos}/*.repo >>{self.seen} 2>/dev/null; exit'
        program(self.bin / "yum", f"{words} {status}")

    def run(self, mirror: str, packages: str) -> "subprocess.CompletedProcess[str]":
        env = {"YUM_REPOS": str(self.repos), "RPM_KEYS": "/keys"}
        path = f"{self.bin}:/usr/bin:/bin"
        return shell("oneflow-gpt-0.3.5/packages.sh", mirror, packages, PATH=path, **env)


def test_packages_of_centos_come_from_the_mirror_alone(tmp_path: Path) -> None:
    """With checked signatures; the file that names the mirror is gone afterwards."""
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


@pytest.mark.parametrize(
    ("mirror", "packages", "status", "words"),
    [
        ("", "rdma-core", 1, "needed apt.mirror in image.yaml"),  # CentOS's own are no more
        ("http://mirror.example/c7", "rdma-core", 1, ""),
        ("http://mirror.example/c7", "", 0, ""),
    ],
)
def test_a_yum_that_fails_ends_the_build_if_there_is_anything_to_install(
    tmp_path: Path, mirror: str, packages: str, status: int, words: str
) -> None:
    yum = Yum(tmp_path, status=1)
    done = yum.run(mirror, packages)
    assert done.returncode == status
    assert words in done.stderr
    assert yum.seen.exists() == bool(packages)
    assert list(yum.repos.iterdir()) == []


def test_the_ssh_server_of_an_image_has_no_keys(tmp_path: Path) -> None:
    """Everybody with the image would have them; settings stay, and sshd finds its folder."""
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
        assert run.stat().st_mode & 0o777 == 0o755


def test_an_image_without_an_ssh_server_names_its_package(tmp_path: Path) -> None:
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
