"""Image definitions, locks and bundles, and the images that ship."""

import json

import pytest

from orchestrator.files import yaml_reader
from orchestrator.model.image import Bundle, Image, LockFile, derive_tag, file_name
from tests import ROOT
from tests.model.test_mistakes import IMAGE

OFED_URL = (
    "http://oneflow-public.oss-cn-beijing.aliyuncs.com/DLPerf/"
    "MLNX_OFED_LINUX-4.9-0.1.7.0-ubuntu18.04-x86_64.tar"
)
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
PYTORCH = "nvcr.io/nvidia/pytorch:20.03-py3"
ZEROS, ONES = f"sha256:{'0' * 64}", f"sha256:{'1' * 64}"


def shipped(name: str) -> Image:
    return yaml_reader.validated(yaml_reader.read(ROOT / "images" / name / "image.yaml"), Image)


def image(text: str) -> Image:
    return yaml_reader.validated(yaml_reader.document(text, "it"), Image)


# What DLPerf's reports and pages name; of OneFlow 0.1.9 and 0.2.0 they name no file: such an image
# asks its user for the wheel.
@pytest.mark.parametrize(
    ("name", "base", "url", "commit", "wheels", "left_open"),
    [
        ("ngc-pytorch-20.03", PYTORCH, NVIDIA, "5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4", (), 0),
        (
            "ngc-tensorflow-20.03",
            "nvcr.io/nvidia/tensorflow:20.03-tf1-py3",
            NVIDIA,
            "fed7ba99cde958fda12c9e81d12b3d7e738e0590",
            (),
            0,
        ),
        ("oneflow-0.1.9", PYTORCH, ONEFLOW, "637bb9cdb4cc1582f13bcc171acbc8a8089d9435", (), 1),
        ("oneflow-0.2.0", PYTORCH, ONEFLOW, "638d8f42aa064486a4268a388f2bd1e9762c98b3", (), 1),
        (
            "oneflow-gpt-0.3.5",
            "docker.io/library/oneflow-manylinux2014-cuda11.2:0.1",
            ONEFLOW,
            "8da0250ad407da338825f1eb3f15ab8c7461427d",
            (GPT_WHEEL,),
            0,
        ),
    ],
)
def test_a_shipped_image_is_that_of_the_reports(
    name: str, base: str, url: str, commit: str, wheels: tuple[str, ...], left_open: int
) -> None:
    found = shipped(name)
    assert found.source is not None
    assert (found.name, found.base, found.wheels) == (name, base, wheels)
    assert (found.source.url, found.source.commit) == (url, commit)
    unsaid = [(conflict.path, conflict.text) for conflict in found.unsaid()]
    assert len(unsaid) == left_open
    for path, text in unsaid:
        assert path == ("left_open", 0)
        assert text.startswith("wheels is left to whoever uses this image; needed `wheels:`")


def test_the_image_of_the_published_runs_has_their_ofed() -> None:
    found = shipped("ngc-pytorch-20.03")
    assert found.ofed is not None
    assert (found.infiniband, found.ofed.version) == ("mlnx_ofed", "4.9-0.1.7.0")
    assert found.downloads == (OFED_URL,)
    assert " ".join(found.ofed.packages) == (
        "dpatch libelf1 libmnl0 libltdl-dev lsof chrpath debhelper pciutils tk bison graphviz"
        " ethtool kmod gfortran swig flex tcl"
    )
    assert found.source is not None
    assert (found.source.path, found.code) == ("PyTorch/Classification/ConvNets", "/workspace/rn50")


def test_the_archive_of_a_base_is_downloaded_and_not_built_in() -> None:
    found = shipped("oneflow-gpt-0.3.5")
    assert found.parts == (GPT_WHEEL,)
    assert found.downloads == (GPT_WHEEL, GPT_ARCHIVE)
    assert found.driver == "450.80.02"


def test_a_key_that_was_left_open_may_be_given_in_a_copy() -> None:
    wheels = 'left_open: [wheels]\nwheels: ["http://files.example/of-1-py3-none-any.whl"]\n'
    assert not list(image(IMAGE + wheels).unsaid())


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (GPT_WHEEL, "oneflow-0.3.5+cu112.git.75f11b825-cp37-cp37m-manylinux2014_x86_64.whl"),
        ("http://files.example/a%2bb.whl", "a+b.whl"),
    ],
)
def test_the_file_of_a_wheel_has_the_plus_that_its_url_encodes(url: str, name: str) -> None:
    """pip reads a version out of the name."""
    assert file_name(url) == name


@pytest.mark.parametrize(
    ("text", "packages", "downloads"),
    [
        (IMAGE, ("git", "tk"), ("http://files.example/MLNX_OFED.tar",)),
        (IMAGE.replace("mlnx_ofed", "distribution"), ("git", "ibverbs-utils"), ()),
        (IMAGE.replace("mlnx_ofed", "none"), ("git",), ()),
        ("name: mine\nbase: registry.example/base:1\n", (), ()),
    ],
    ids=["mlnx_ofed", "distribution", "none", "little"],
)
def test_infiniband_decides_packages_and_downloads(
    text: str, packages: tuple[str, ...], downloads: tuple[str, ...]
) -> None:
    found = image(text)
    assert (found.packages, found.downloads) == (packages, downloads)


def test_a_lock_is_read_as_it_was_written() -> None:
    written = LockFile(version=1).extend({"registry.example/base:1": ZEROS}, {OFED_URL: ONES})
    read = yaml_reader.validated(yaml_reader.document(written.text(), "it"), LockFile)
    assert read == written


IN_BUNDLE: dict[str, object] = {
    **{"name": "mine", "tag": f"dlperf/mine:{'1' * 16}", "id": ZEROS, "inputs": ONES},
    "content": ZEROS,
    **{"base": "registry.example/base:1", "base_digest": ZEROS},
    **{"file": "images/mine.tar", "sha256": ONES, "size": 10},
}
DOWNLOAD: dict[str, object] = {
    **{"url": OFED_URL, "sha256": ZEROS, "file": "downloads/ofed.tar", "size": 20}
}


def bundle(image: dict[str, object], download: dict[str, object]) -> Bundle:
    """Return the bundle of an image and a download, written and read."""
    parts = {"images": [{**IN_BUNDLE, **image}], "downloads": [{**DOWNLOAD, **download}]}
    text = json.dumps({"version": 1, "created": "2026-01-01T00:00:00+00:00", **parts})
    return Bundle.model_validate_json(Bundle.model_validate_json(text).text())


def test_a_bundle_lists_the_digest_of_each_file() -> None:
    assert bundle({}, {}).files == {"images/mine.tar": ONES, "downloads/ofed.tar": ZEROS}


@pytest.mark.parametrize(
    ("image", "download"),
    [
        ({"file": "/etc/passwd"}, {}),
        ({"file": "images/../../etc/passwd.tar"}, {}),
        ({"tag": "debian:12"}, {}),
        ({}, {"file": "downloads/../bundle.json"}),
        ({}, {"size": 0}),
    ],
)
def test_a_bundle_cannot_name_files_outside_of_itself(
    image: dict[str, object], download: dict[str, object]
) -> None:
    """Paths and tags of a bundle that someone else made are checked like any other input."""
    (key,) = (*image, *download)
    with pytest.raises(ValueError, match=key):
        bundle(image, download)


def test_another_tag_of_a_base_becomes_part_of_the_images_name() -> None:
    """NAME@TAG is no name that Docker takes, and its names are in small letters."""
    assert derive_tag("ngc-pytorch-20.03@20.12-PY3", ONES) == (
        "dlperf/ngc-pytorch-20.03-20.12-py3:1111111111111111"
    )
