"""What goes into an image, what it is called, and what is done until every node has it."""

from dataclasses import replace

import pytest

from orchestrator.files import yaml_reader
from orchestrator.model.image import Apt, HeldImage, Image, Ofed, Source, content_digest
from orchestrator.model.site import ImageRecord
from orchestrator.planning import images
from orchestrator.planning.images import Action, ImageRecipe, Reference
from tests import ROOT

SHIPPED = ROOT / "images"
BASE, DIGEST = "nvcr.io/nvidia/pytorch:20.03-py3", f"sha256:{'a' * 64}"
URL, SUM = "http://files.example/4.9/ofed.tar", f"sha256:{'b' * 64}"
COMMIT = "5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4"
IMAGE = Image(
    name="mine",
    base=BASE,
    code="/workspace/mine",
    infiniband="mlnx_ofed",
    ofed=Ofed(url=URL, version="4.9-0.1.7.0", packages=("tk", "tcl")),
    apt=Apt(packages=("git",), mirror="http://mirror.example/ubuntu"),
    pip=("numpy==1.18.1",),
    source=Source(url="https://git.example/it.git", commit=COMMIT, path="a/b"),
)
WHEEL = "http://files.example/of-1%2Bcu112-py3-none-any.whl"
WITH_WHEEL = IMAGE.model_copy(update={"wheels": (WHEEL,)})
ARCHIVE = "http://files.example/base.tar.gz"
LOADED = Image(name="mine", base="docker.io/library/base:1", archive=ARCHIVE)
RECIPE = ImageRecipe(IMAGE, DIGEST, {"Dockerfile": SUM}, {URL: SUM})
ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
HELD = f"sha256:{'c' * 64}"
RECORD = ImageRecord("mine", BASE, DIGEST, ONE, str(RECIPE.tag), SUM, "", "", locked=False)
FIRST, SECOND = HeldImage(ONE, RECIPE.inputs, ONE), HeldImage(TWO, RECIPE.inputs, TWO)
FOREIGN = (HeldImage(TWO, None, TWO), HeldImage(TWO, SUM, TWO))


@pytest.mark.parametrize(
    ("base", "parts"),
    [
        (BASE, Reference("nvcr.io", "nvidia/pytorch", "20.03-py3")),
        ("10.11.0.1:5000/a/b:c", Reference("10.11.0.1:5000", "a/b", "c")),
        ("localhost/a:b", Reference("localhost", "a", "b")),
        ("pytorch/pytorch:2.1", Reference("docker.io", "pytorch/pytorch", "2.1")),
        ("docker.io/debian:12", Reference("docker.io", "library/debian", "12")),
        ("debian:12", Reference("docker.io", "library/debian", "12")),
        ("cuda11.2:0.1", Reference("docker.io", "library/cuda11.2", "0.1")),
    ],
)
def test_base_is_taken_apart_as_docker_does(base: str, parts: Reference) -> None:
    """What begins with no registry lies on Docker Hub, and without a name in its library."""
    assert images.reference(base) == parts


def test_base_is_pulled_by_digest_from_mirror_or_origin() -> None:
    """The mirror changes the host alone: the bytes are named by their digest."""
    assert images.base_to_build_from(IMAGE, DIGEST, None) == f"nvcr.io/nvidia/pytorch@{DIGEST}"
    mirrored = images.base_to_build_from(IMAGE, DIGEST, "10.11.0.1:5000")
    assert mirrored == f"10.11.0.1:5000/nvidia/pytorch@{DIGEST}"


def test_build_takes_every_value_from_the_image_file() -> None:
    """One argument for each; packages and requirements with blanks between them."""
    assert images.values(IMAGE) == {
        "PYTHON": "python",
        "CODE": "/workspace/mine",
        "INFINIBAND": "mlnx_ofed",
        "OFED_TAR": "ofed.tar",
        "OFED_VERSION": "4.9-0.1.7.0",
        "APT_PACKAGES": "git tk tcl",
        "APT_MIRROR": "http://mirror.example/ubuntu",
        "PIP_PACKAGES": "numpy==1.18.1",
        "SOURCE_URL": "https://git.example/it.git",
        "SOURCE_COMMIT": COMMIT,
        "SOURCE_PATH": "a/b",
    }


def test_value_that_is_not_there_is_no_argument() -> None:
    """A Dockerfile's own defaults hold for what image.yaml does not say."""
    plain = Image(name="mine", base=BASE)
    assert set(images.values(plain)) == {"PYTHON", "CODE", "INFINIBAND"}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SHIPPED.glob("*/image.yaml")))
def test_shipped_dockerfile_uses_what_its_image_says(name: str) -> None:
    """No value of a shipped image.yaml is without effect."""
    image = yaml_reader.validated(yaml_reader.read(SHIPPED / name / "image.yaml"), Image)
    assert images.ignored(image, (SHIPPED / name / "Dockerfile").read_text()) == ()


def test_value_without_effect_is_named() -> None:
    """Who asks for InfiniBand in an image whose Dockerfile has no word of it, is told so."""
    dockerfile = "ARG BASE\nFROM ${BASE}\nARG CODE=/x\nARG APT_PACKAGES\nRUN ARG\n\n"
    light = Image(name="mine", base=BASE, infiniband="distribution")
    assert images.ignored(light, dockerfile) == ("INFINIBAND",)
    assert images.ignored(light.model_copy(update={"infiniband": "none"}), dockerfile) == ()


CHANGED = (
    replace(RECIPE, base_digest=SUM),
    replace(RECIPE, files={"Dockerfile": DIGEST}),
    replace(RECIPE, files={"dockerfile": SUM}),
    replace(RECIPE, downloads={URL: DIGEST}),
    replace(RECIPE, image=IMAGE.model_copy(update={"name": "other"})),
    replace(RECIPE, image=IMAGE.model_copy(update={"code": "/workspace/other"})),
    replace(RECIPE, image=IMAGE.model_copy(update={"pip": ()})),
    replace(RECIPE, image=IMAGE.model_copy(update={"infiniband": "none"})),
    replace(RECIPE, image=IMAGE.model_copy(update={"apt": Apt(packages=("git",))})),
    replace(RECIPE, image=IMAGE.model_copy(update={"source": None})),
    replace(RECIPE, image=WITH_WHEEL, downloads={URL: SUM, WHEEL: SUM}),
    replace(RECIPE, image=WITH_WHEEL, downloads={URL: SUM, WHEEL: DIGEST}),
)


def test_everything_that_goes_in_changes_the_name() -> None:
    """Two images that differ in one input never share a tag; the same inputs always do."""
    tags = [recipe.tag for recipe in (RECIPE, *CHANGED)]
    assert None not in tags
    assert len(set(tags)) == len(tags)
    assert replace(RECIPE, downloads={"http://other.example/x": DIGEST, URL: SUM}).tag == tags[0]


def test_what_does_not_go_in_leaves_the_name() -> None:
    """A description, and what the program needs where it runs without an image."""
    same = IMAGE.model_copy(update={"description": "words", "requires": ("torch",)})
    assert replace(RECIPE, image=same).tag == RECIPE.tag


def test_tag_is_the_name_and_the_beginning_of_the_hash() -> None:
    """Sixteen digits of the hash that the label holds whole."""
    assert RECIPE.inputs
    assert RECIPE.tag == f"dlperf/mine:{RECIPE.inputs[7:23]}"


def test_image_that_no_node_has_is_built_once_and_carried() -> None:
    """On the first node, from a tarball that this machine fetches first; the others get it."""
    tag = str(RECIPE.tag)
    there = dict.fromkeys(("vs001", "vs002", "vs003"))
    assert images.actions(RECIPE, there) == (
        Action("download", "", URL, "this machine does not have it yet"),
        Action("build", "vs001", tag, "no node has it"),
        Action("carry", "vs002", tag, "vs001 will have it"),
        Action("carry", "vs003", tag, "vs001 will have it"),
    )
    cached = replace(RECIPE, cached=frozenset({SUM}))
    assert images.actions(cached, there) == images.actions(RECIPE, there)[1:]


def test_second_run_does_nothing() -> None:
    """Every node has the image under its name, and it is one image: no action."""
    assert images.actions(RECIPE, {"vs001": FIRST, "vs002": FIRST}) == ()


def test_image_is_carried_from_a_node_that_has_it() -> None:
    """Nothing is built or downloaded again; another image under the same name is replaced."""
    tag = str(RECIPE.tag)
    there = {"vs001": None, "vs002": FIRST, "vs003": SECOND}
    assert images.actions(RECIPE, there) == (
        Action("carry", "vs001", tag, "the node has none; vs002 has it"),
        Action("carry", "vs003", tag, f"the node has {'2' * 12}; vs002 has {'1' * 12}"),
    )


def test_last_provisionings_image_is_the_one_that_is_carried() -> None:
    """Several were built from the same inputs: the known id decides, else the first node's."""
    tag = str(RECIPE.tag)
    there = {"vs001": FIRST, "vs002": SECOND}
    assert images.actions(replace(RECIPE, before=replace(RECORD, id=TWO)), there) == (
        Action("carry", "vs001", tag, f"the node has {'1' * 12}; vs002 has {'2' * 12}"),
    )
    elsewhere = replace(RECIPE, before=replace(RECORD, id=SUM))
    assert [action.node for action in images.actions(elsewhere, there)] == ["vs002"]


def test_image_is_the_same_whatever_an_engine_calls_it() -> None:
    """Engines that keep images in containerd name them otherwise."""
    tag = str(RECIPE.tag)
    one, other = (HeldImage(name, RECIPE.inputs, HELD) for name in (ONE, TWO))
    there = {"vs001": one, "vs002": other}
    assert images.actions(RECIPE, there) == ()
    assert images.actions(replace(RECIPE, bundled={tag: other}), there) == ()
    spoilt = {**there, "vs002": replace(other, content=SUM)}
    assert [action.node for action in images.actions(RECIPE, spoilt)] == ["vs002"]


def test_an_image_keeps_its_id_as_long_as_a_node_knows_it_so() -> None:
    """Whichever node is first, with fewer nodes or more; after a new build it is the first's."""
    assert images.known_as({"a": ONE, "b": TWO, "c": ONE}, None) == (ONE, {"b": TWO})
    before = replace(RECORD, id=ONE, ids={"b": TWO})
    assert images.known_as({"b": TWO, "c": ONE}, before) == (ONE, {"b": TWO})
    assert images.known_as({"b": TWO}, before) == (ONE, {"b": TWO})
    assert images.known_as({"a": TWO, "b": TWO}, before) == (ONE, {"a": TWO, "b": TWO})
    assert images.known_as({"a": ONE}, before) == (ONE, {"b": TWO})
    assert images.known_as({"b": ONE, "c": ONE}, before) == (ONE, {})
    assert images.known_as({"a": SUM, "b": SUM}, before) == (SUM, {})


def test_content_is_layers_and_settings_in_any_order() -> None:
    """What an engine leaves out or writes as nothing is the same; what counts is not."""
    settings = {"Env": ["A=1"], "Labels": {"a": "1", "b": "2"}, "Cmd": ["sh"]}
    digest = content_digest((ONE, TWO), settings)
    said: dict[str, object] = {"Hostname": "", "User": "", "Volumes": None, "Image": ONE}
    turned = {"Cmd": ["sh"], "Labels": {"b": "2", "a": "1"}, "Env": ["A=1"]}
    assert content_digest((ONE, TWO), {**said, **turned}) == digest
    others = {
        content_digest((TWO, ONE), settings),
        content_digest((ONE,), settings),
        content_digest((ONE, TWO), {**settings, "User": "root"}),
        content_digest((ONE, TWO), {**settings, "Env": ["A=2"]}),
    }
    assert len(others | {digest}) == 5


@pytest.mark.parametrize("foreign", FOREIGN)
def test_image_of_other_inputs_is_not_ours_whatever_its_tag(foreign: HeldImage) -> None:
    """Without the label or with another one it is replaced, even where its id is the known one."""
    tag = str(RECIPE.tag)
    recipe = replace(RECIPE, before=replace(RECORD, id=TWO))
    why = f"the node has {'2' * 12}, which was not built from these inputs; "
    assert images.actions(recipe, {"vs001": foreign, "vs002": FIRST}) == (
        Action("carry", "vs001", tag, f"{why}vs002 has {'1' * 12}"),
    )
    bundled = replace(recipe, bundled={tag: SECOND})
    assert images.actions(bundled, {"vs001": foreign, "vs002": SECOND}) == (
        Action("load", "vs001", tag, f"{why}the bundle has {'2' * 12}"),
    )


@pytest.mark.parametrize("foreign", FOREIGN)
def test_image_is_built_where_only_others_have_its_tag(foreign: HeldImage) -> None:
    """On the first node, and carried over the others'."""
    tag = str(RECIPE.tag)
    cached = replace(RECIPE, cached=frozenset({SUM}))
    assert images.actions(cached, {"vs001": None, "vs002": foreign}) == (
        Action("build", "vs001", tag, "no node has it; another image has that name on vs002"),
        Action("carry", "vs002", tag, "vs001 will have it"),
    )


def test_bundle_is_loaded_instead_of_built() -> None:
    """What the bundle holds counts, also where a node has another image under its name."""
    tag = str(RECIPE.tag)
    bundled = replace(RECIPE, bundled={tag: FIRST})
    there = {"vs001": SECOND, "vs002": None, "vs003": FIRST}
    assert images.actions(bundled, there) == (
        Action("load", "vs001", tag, f"the node has {'2' * 12}; the bundle has {'1' * 12}"),
        Action("load", "vs002", tag, "the node has none; the bundle has it"),
    )


def test_what_is_not_known_is_found_out_first() -> None:
    """Without a lock the base is resolved and the tarball fetched before a name can be given."""
    unknown = replace(RECIPE, base_digest=None, downloads={})
    assert unknown.tag is None
    assert images.actions(unknown, {"vs001": None, "vs002": None}) == (
        Action("download", "", URL, "its sha256 is not known"),
        Action("resolve", "", BASE, "its digest is not known"),
        Action("build", "vs001", "mine", "no node has it"),
        Action("carry", "vs002", "mine", "vs001 will have it"),
    )
    half = replace(RECIPE, downloads={})
    assert half.tag is None
    assert [action.kind for action in images.actions(half, {"vs001": None})] == [
        "download",
        "build",
    ]
    other = replace(RECIPE, base_digest=None)
    assert [action.kind for action in images.actions(other, {"vs001": None})] == [
        *("resolve", "download", "build")
    ]


def test_wheels_are_an_argument_by_their_names() -> None:
    """As they lie in the build, with the + that their URLs write as %2B."""
    args = images.values(WITH_WHEEL)
    assert args["WHEELS"] == "of-1+cu112-py3-none-any.whl"
    assert args["OFED_TAR"] == "ofed.tar"
    assert replace(RECIPE, image=WITH_WHEEL).tag is None
    light = WITH_WHEEL.model_copy(update={"infiniband": "none"})
    assert not {"OFED_TAR", "OFED_VERSION"} & set(images.values(light))


def test_base_of_an_archive_is_built_from_by_its_id() -> None:
    """No registry and no mirror has it; the engine knows it once it is loaded."""
    assert images.base_to_build_from(LOADED, ONE, "10.11.0.1:5000") == ONE
    assert images.base_to_build_from(IMAGE, DIGEST, None) == f"nvcr.io/nvidia/pytorch@{DIGEST}"


def test_archive_is_fetched_and_looked_into_before_anything_else() -> None:
    """Its image's id is what goes into the name, wherever the archive lay."""
    unknown = ImageRecipe(LOADED, None, {"Dockerfile": SUM}, {})
    assert unknown.needed == (ARCHIVE,)
    assert images.actions(unknown, {"vs001": None}) == (
        Action("download", "", ARCHIVE, "its sha256 is not known"),
        Action("resolve", "", "docker.io/library/base:1", "its digest is not known"),
        Action("build", "vs001", "mine", "no node has it"),
    )
    known = replace(unknown, base_digest=ONE, downloads={ARCHIVE: SUM})
    assert images.actions(known, {"vs001": None}) == (
        Action("download", "", ARCHIVE, "this machine does not have it yet"),
        Action("build", "vs001", str(known.tag), "no node has it"),
    )
    elsewhere = LOADED.model_copy(update={"archive": "http://other.example/base.tar"})
    assert replace(known, image=elsewhere, downloads={}).tag == known.tag


def test_archive_is_not_missed_where_its_image_is_known() -> None:
    """Nodes that have the image, or a bundle of it, need no base."""
    known = ImageRecipe(LOADED, ONE, {"Dockerfile": SUM}, {})
    assert known.needed == ()
    tag, image = str(known.tag), HeldImage(TWO, known.inputs, TWO)
    assert images.actions(known, {"vs001": image}) == ()
    bundled = replace(known, bundled={tag: image})
    assert [action.kind for action in images.actions(bundled, {"vs001": None})] == ["load"]
