"""Image definitions, locks and bundles: what they may hold, and what is refused in them."""

import json
import re
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.files import yaml_reader
from orchestrator.model.image import (
    Bundle,
    Image,
    LockFile,
    derive_tag,
    file_name,
)
from tests import ROOT

SHIPPED = ROOT / "images"
OFED_URL = (
    "http://oneflow-public.oss-cn-beijing.aliyuncs.com/DLPerf/"
    "MLNX_OFED_LINUX-4.9-0.1.7.0-ubuntu18.04-x86_64.tar"
)
ZEROS, ONES = f"sha256:{'0' * 64}", f"sha256:{'1' * 64}"
IMAGE = """\
name: mine
base: registry.example/base:1
infiniband: mlnx_ofed
ofed: {url: http://files.example/MLNX_OFED.tar, version: 4.9-0.1.7.0, packages: [tk]}
apt: {packages: [git], infiniband: [ibverbs-utils], mirror: "http://mirror.example:8080/ubuntu"}
pip: [numpy==1.18.1]
source:
  {url: https://git.example/it.git, commit: 5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4, path: a/b}
code: /workspace/mine
"""


def read(folder: Path, text: str) -> Image:
    """The image that a file with this text defines."""
    path = folder / "image.yaml"
    path.write_text(text)
    return yaml_reader.validated(yaml_reader.read(path), Image)


def test_shipped_image_is_that_of_the_published_runs() -> None:
    """Base, OFED, its dependencies and the code's commit are those of DLPerf's report."""
    found = yaml_reader.validated(
        yaml_reader.read(SHIPPED / "ngc-pytorch-20.03" / "image.yaml"), Image
    )
    assert found.base == "nvcr.io/nvidia/pytorch:20.03-py3"
    assert found.ofed is not None
    assert (found.infiniband, found.ofed.version) == ("mlnx_ofed", "4.9-0.1.7.0")
    assert found.downloads == (OFED_URL,)
    assert " ".join(found.ofed.packages) == (
        "dpatch libelf1 libmnl0 libltdl-dev lsof chrpath debhelper pciutils tk bison graphviz"
        " ethtool kmod gfortran swig flex tcl"
    )
    assert found.source is not None
    assert found.source.commit == "5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4"
    assert (found.source.path, found.code) == ("PyTorch/Classification/ConvNets", "/workspace/rn50")


GPT_WHEEL = (
    "https://oneflow-public.oss-cn-beijing.aliyuncs.com/GPT/package/"
    "oneflow-0.3.5%2Bcu112.git.75f11b825-cp37-cp37m-manylinux2014_x86_64.whl"
)
GPT_ARCHIVE = (
    "https://oneflow-static.oss-cn-beijing.aliyuncs.com/docker_images/"
    "oneflow-manylinux2014-cuda11.2-0.1.tar.gz"
)
NVIDIA = "https://github.com/NVIDIA/DeepLearningExamples.git"
ONEFLOW = "https://github.com/Oneflow-Inc/OneFlow-Benchmark.git"


# What DLPerf's reports and pages name; of OneFlow 0.1.9 and 0.2.0 they name no file.
@pytest.mark.parametrize(
    ("name", "base", "url", "commit", "wheels"),
    [
        (
            "ngc-tensorflow-20.03",
            "nvcr.io/nvidia/tensorflow:20.03-tf1-py3",
            NVIDIA,
            "fed7ba99cde958fda12c9e81d12b3d7e738e0590",
            (),
        ),
        (
            "oneflow-0.1.9",
            "nvcr.io/nvidia/pytorch:20.03-py3",
            ONEFLOW,
            "637bb9cdb4cc1582f13bcc171acbc8a8089d9435",
            (),
        ),
        (
            "oneflow-0.2.0",
            "nvcr.io/nvidia/pytorch:20.03-py3",
            ONEFLOW,
            "638d8f42aa064486a4268a388f2bd1e9762c98b3",
            (),
        ),
        (
            "oneflow-gpt-0.3.5",
            "docker.io/library/oneflow-manylinux2014-cuda11.2:0.1",
            ONEFLOW,
            "8da0250ad407da338825f1eb3f15ab8c7461427d",
            (GPT_WHEEL,),
        ),
    ],
)
def test_shipped_images_are_those_of_the_reports(
    name: str, base: str, url: str, commit: str, wheels: tuple[str, ...]
) -> None:
    """Base, code and wheel of each; none contradicts itself."""
    found = yaml_reader.validated(yaml_reader.read(SHIPPED / name / "image.yaml"), Image)
    assert found.source is not None
    assert (found.name, found.base, found.wheels) == (name, base, wheels)
    assert (found.source.url, found.source.commit) == (url, commit)


def test_what_nobody_could_say_is_left_to_the_user() -> None:
    """OneFlow's old wheels: their images say what must be given, and where, before a build."""
    for name, open_keys in (("oneflow-0.1.9", 1), ("oneflow-0.2.0", 1), ("oneflow-gpt-0.3.5", 0)):
        found = yaml_reader.validated(yaml_reader.read(SHIPPED / name / "image.yaml"), Image)
        told = [(conflict.path, conflict.text) for conflict in found.unsaid()]
        assert len(told) == open_keys
        for path, text in told:
            assert path == ("left_open", 0)
            assert text.startswith("wheels is left to whoever uses this image; needed `wheels:`")


def test_key_that_was_left_open_and_is_given_is_no_longer_open(tmp_path: Path) -> None:
    """A copy of the folder need not change anything else."""
    said = 'left_open: [wheels]\nwheels: ["http://files.example/of-1-py3-none-any.whl"]\n'
    assert not list(read(tmp_path, IMAGE + said).unsaid())


def test_base_may_come_as_a_file() -> None:
    """Its archive is fetched, and is no part of the build."""
    found = yaml_reader.validated(
        yaml_reader.read(SHIPPED / "oneflow-gpt-0.3.5" / "image.yaml"), Image
    )
    assert found.parts == (GPT_WHEEL,)
    assert found.downloads == (GPT_WHEEL, GPT_ARCHIVE)
    assert found.driver == "450.80.02"


def test_plus_of_a_wheel_is_written_as_urls_do() -> None:
    """pip reads a version out of the name, so it has the + again inside the build."""
    assert file_name(GPT_WHEEL) == (
        "oneflow-0.3.5+cu112.git.75f11b825-cp37-cp37m-manylinux2014_x86_64.whl"
    )
    assert file_name("http://files.example/a%2bb.whl") == "a+b.whl"


def test_one_word_chooses_whose_user_space_goes_in(tmp_path: Path) -> None:
    """The distribution's choice installs its packages, and downloads no tarball."""
    ofed = read(tmp_path, IMAGE)
    assert (ofed.packages, len(ofed.downloads)) == (("git", "tk"), 1)
    light = read(tmp_path, IMAGE.replace("mlnx_ofed", "distribution"))
    assert (light.packages, light.downloads) == (("git", "ibverbs-utils"), ())
    none = read(tmp_path, IMAGE.replace("mlnx_ofed", "none"))
    assert (none.packages, none.downloads) == (("git",), ())


def test_image_that_says_little_has_nothing_put_in(tmp_path: Path) -> None:
    """Every key but name and base may be left out."""
    plain = read(tmp_path, "name: mine\nbase: registry.example/base:1\n")
    assert (plain.packages, plain.downloads, plain.pip, plain.source) == ((), (), (), None)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            IMAGE[IMAGE.index("ofed: {") : IMAGE.index("apt:")],
            "",
            "infiniband: mlnx_ofed; needed `",
        ),
        ("/workspace/mine", "~/mine", "code: got '~/mine'; needed an absolute path"),
    ],
)
def test_image_that_contradicts_itself_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    """Values that are each right and cannot hold together are named at the one to change."""
    with pytest.raises(errors.ConfigError, match=re.escape(words)):
        read(tmp_path, IMAGE.replace(old, new))


BAD = (
    ("name: mine", "name: Mine", "small letters and digits"),
    ("name: mine", "name: a..b", "small letters and digits"),
    ("name: mine", "name: x", "2 to 63 letters"),
    ("mlnx_ofed\n", "mlnx-ofed\n", "did you mean 'mlnx_ofed'?"),
    ("http://files.example", "ftp://files.example", "needed http(s)://host/path/file"),
    ("http://files.example", "http://me:pass@files.example", "needed http(s)://host/path/file"),
    ("MLNX_OFED.tar", "MLNX_OFED.tar?x=1", "needed http(s)://host/path/file"),
    ("MLNX_OFED.tar", "dir/", "needed http(s)://host/path/file"),
    ("MLNX_OFED.tar", "..", "needed http(s)://host/path/file"),
    ("MLNX_OFED.tar", "$(id).tar", "needed http(s)://host/path/file"),
    ("MLNX_OFED.tar", "x" * 500, "at most 500 characters"),
    ("4.9-0.1.7.0", "4.9; id", "such as 4.9-0.1.7.0"),
    ("4.9-0.1.7.0,", f"4.9-0.1.7.0, sha256: {ZEROS},", "unknown key 'sha256'"),
    ("[tk]", "[tk, -y]", "a Debian package"),
    ("[tk]", "[tk;id]", "a Debian package"),
    ("[git]", "[git=1 2]", "a Debian package"),
    ("[git]", "git", "needed a list"),
    ("http://mirror.example", "http://-mirror.example", "needed http(s)://host/path"),
    ("/ubuntu", "/ub untu", "needed http(s)://host/path"),
    ("numpy==1.18.1", "numpy", "needed NAME==VERSION or git+https"),
    ("numpy==1.18.1", "numpy>=1", "needed NAME==VERSION or git+https"),
    ("numpy==1.18.1", "--index-url=x", "needed NAME==VERSION or git+https"),
    ("numpy==1.18.1", "git+https://x.example/y@main", "needed NAME==VERSION or git+https"),
    ("https://git.example", "ssh://git.example", "needed http(s)://host/path"),
    ("https://git.example", "file:///etc", "needed http(s)://host/path"),
    ("5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4", "5cc03ca", "40 hexadecimal digits"),
    ("a/b", "/a/b", "a path inside the repository"),
    ("a/b", "../b", "needed a path inside the repository, without '..'"),
    ("a/b", "-a", "a path inside the repository"),
    ("a/b", "a b", "a path inside the repository"),
    ("[numpy==1.18.1]", "numpy==1.18.1", "needed a list"),
    ("registry.example/base:1", f"registry.example/base:1@{ZEROS}", "the lock holds digests"),
    ("apt: {", "archive: /tmp/base.tar\napt: {", "needed http(s)://host/path/file"),
    ("apt: {", "wheels: [http://files.example/of.tar]\napt: {", "path/file.whl"),
    ("apt: {", "wheels: [http://files.example/of$x.whl]\napt: {", "path/file.whl"),
    ("apt: {", "wheels: [http://files.example/of%20x.whl]\napt: {", "path/file.whl"),
    ("apt: {", "wheels:\napt: {", "got nothing"),
    ("apt: {", "left_open: [source]\napt: {", "'wheels'"),
)


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_bad_value_never_gets_near_a_shell(tmp_path: Path, old: str, new: str, words: str) -> None:
    """Only plain words go into a build; the mistake says what was needed and hides passwords."""
    assert old in IMAGE
    with pytest.raises(errors.ConfigError, match=r"image\.yaml:") as refused:
        read(tmp_path, IMAGE.replace(old, new, 1))
    assert words in str(refused.value)
    assert "me:pass" not in str(refused.value)


def test_lock_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """What is written is read by the same strict reader as every file that a user edits."""
    written = LockFile(version=1).extend({"registry.example/base:1": ZEROS}, {OFED_URL: ONES})
    path = tmp_path / "v100x4.lock.json"
    path.write_text(written.text())
    assert yaml_reader.validated(yaml_reader.read(path), LockFile) == written


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"images": {}}', "key 'version' is missing"),
        ('{"version": 2}', "got 2"),
        ('{"version": 1, "images": {"registry.example/b:1": "sha256:12"}}', "64 hexadecimal"),
        (f'{{"version": 1, "images": {{"b": "{ZEROS}"}}}}', "needed registry/repository:tag"),
        (f'{{"version": 1, "downloads": {{"ftp://x/y": "{ZEROS}"}}}}', "needed http(s)://host"),
        ('{"version": 1, "version": 1}', "a key for the second time"),
    ],
)
def test_bad_lock_is_refused_at_its_place(tmp_path: Path, text: str, words: str) -> None:
    """B22: a lock that was edited wrongly is a mistake about its line, and never half used."""
    path = tmp_path / "lab.lock.json"
    path.write_text(text)
    with pytest.raises(errors.ConfigError) as refused:
        yaml_reader.validated(yaml_reader.read(path), LockFile)
    assert "lab.lock.json:1:" in str(refused.value)
    assert words in str(refused.value)


def bundle_parts() -> dict[str, list[dict[str, object]]]:
    """One image and one download, as bundle.json holds them."""
    image = {
        **{"name": "mine", "tag": f"dlperf/mine:{'1' * 16}", "id": ZEROS, "inputs": ONES},
        "content": ZEROS,
        **{"base": "registry.example/base:1", "base_digest": ZEROS},
        **{"file": "images/mine.tar", "sha256": ONES, "size": 10},
    }
    download = {"url": OFED_URL, "sha256": ZEROS, "file": "downloads/ofed.tar", "size": 20}
    return {"images": [image], "downloads": [download]}


def bundle(parts: dict[str, list[dict[str, object]]]) -> Bundle:
    """A bundle of these parts, through its own text."""
    text = json.dumps({"version": 1, "created": "2026-01-01T00:00:00+00:00", **parts})
    return Bundle.model_validate_json(Bundle.model_validate_json(text).text())


def test_bundle_says_what_lies_in_it() -> None:
    """Bundle.files gives the sha256 that each file must have."""
    assert bundle(bundle_parts()).files == {
        "images/mine.tar": ONES,
        "downloads/ofed.tar": ZEROS,
    }


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("images", "file", "/etc/passwd"),
        ("images", "file", "images/../../etc/passwd.tar"),
        ("images", "tag", "debian:12"),
        ("downloads", "file", "downloads/../bundle.json"),
        ("downloads", "size", 0),
    ],
)
def test_bundle_cannot_name_files_outside_of_itself(part: str, key: str, value: object) -> None:
    """Paths and tags of a bundle that someone else made are judged like any other input."""
    parts = bundle_parts()
    parts[part][0][key] = value
    with pytest.raises(ValueError, match=key):
        bundle(parts)


def test_another_tag_of_a_base_is_another_image() -> None:
    """NAME@TAG is no name that Docker takes: the tag becomes a part of it, in small letters."""
    assert derive_tag("ngc-pytorch-20.03@20.12-PY3", ONES) == (
        "dlperf/ngc-pytorch-20.03-20.12-py3:1111111111111111"
    )
