"""What goes into an image, what it is called, and what is done until every node has it."""

import re
from collections.abc import Mapping
from dataclasses import astuple, replace

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.files import yaml_reader
from orchestrator.model.image import Apt, HeldImage, Image, Ofed, Source, content_digest
from orchestrator.model.site import ImageRecord
from orchestrator.planning import images
from orchestrator.planning.images import ImageRecipe, Reference
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
CACHED = replace(RECIPE, cached=frozenset({SUM}))
ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
TAG = str(RECIPE.tag)
RECORD = ImageRecord("mine", BASE, DIGEST, ONE, TAG, SUM, "", "", locked=False)
FIRST, SECOND = HeldImage(ONE, RECIPE.inputs, ONE), HeldImage(TWO, RECIPE.inputs, TWO)
# In containerd an engine calls the same content by another id.
OTHERWISE = HeldImage(TWO, RECIPE.inputs, ONE)
UNLABELED, FOREIGN = HeldImage(TWO, None, TWO), HeldImage(TWO, SUM, TWO)
BUNDLED = replace(RECIPE, bundled={TAG: FIRST})
# A base that comes as a file: its id is known once it is loaded.
UNKNOWN = ImageRecipe(LOADED, None, {"Dockerfile": SUM}, {})
LOOKED_INTO = replace(UNKNOWN, base_digest=ONE)


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
def test_a_base_is_split_as_docker_does(base: str, parts: Reference) -> None:
    """Without a registry it means Docker Hub, and without a repository Docker's library."""
    assert images.reference(base) == parts


@pytest.mark.parametrize(
    ("image", "digest", "mirror", "base"),
    [
        (IMAGE, DIGEST, None, f"nvcr.io/nvidia/pytorch@{DIGEST}"),
        (IMAGE, DIGEST, "10.11.0.1:5000", f"10.11.0.1:5000/nvidia/pytorch@{DIGEST}"),
        (LOADED, ONE, "10.11.0.1:5000", ONE),
    ],
)
def test_a_base_is_named_by_its_digest(
    image: Image, digest: str, mirror: str | None, base: str
) -> None:
    """A mirror changes the host alone; no registry has the base of an archive."""
    assert images.base_to_build_from(image, digest, mirror) == base


def test_a_build_takes_every_value_from_the_image_file() -> None:
    """A value that is not there is no argument: a Dockerfile's own default holds."""
    assert images.values(WITH_WHEEL) == {
        "PYTHON": "python",
        "CODE": "/workspace/mine",
        "INFINIBAND": "mlnx_ofed",
        "OFED_TAR": "ofed.tar",
        "OFED_VERSION": "4.9-0.1.7.0",
        "APT_PACKAGES": "git tk tcl",
        "APT_MIRROR": "http://mirror.example/ubuntu",
        "PIP_PACKAGES": "numpy==1.18.1",
        "WHEELS": "of-1+cu112-py3-none-any.whl",
        "SOURCE_URL": "https://git.example/it.git",
        "SOURCE_COMMIT": COMMIT,
        "SOURCE_PATH": "a/b",
    }
    assert set(images.values(Image(name="mine", base=BASE))) == {"PYTHON", "CODE", "INFINIBAND"}
    light = WITH_WHEEL.model_copy(update={"infiniband": "none"})
    assert not {"OFED_TAR", "OFED_VERSION"} & set(images.values(light))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SHIPPED.glob("*/image.yaml")))
def test_a_shipped_dockerfile_uses_every_value_of_its_image(name: str) -> None:
    image = yaml_reader.validated(yaml_reader.read(SHIPPED / name / "image.yaml"), Image)
    declared = re.findall(r"(?m)^ARG (\w+)", (SHIPPED / name / "Dockerfile").read_text())
    used = {argument for argument, value in images.values(image).items() if value != "none"}
    assert used - {"PYTHON"} <= {*declared}


CHANGED = (
    replace(RECIPE, base_digest=SUM),
    replace(RECIPE, files={"Dockerfile": DIGEST}),
    replace(RECIPE, files={"dockerfile": SUM}),
    replace(RECIPE, downloads={URL: DIGEST}),
    replace(RECIPE, image=WITH_WHEEL, downloads={URL: SUM, WHEEL: SUM}),
    replace(RECIPE, image=WITH_WHEEL, downloads={URL: SUM, WHEEL: DIGEST}),
    *(
        replace(RECIPE, image=IMAGE.model_copy(update=changed))
        for changed in (
            {"name": "other"},
            {"code": "/workspace/other"},
            {"pip": ()},
            {"infiniband": "none"},
            {"apt": Apt(packages=("git",))},
            {"source": None},
        )
    ),
)


def test_the_tag_has_the_hash_of_all_that_goes_in_and_of_nothing_else() -> None:
    """Two images that differ in one input never share a tag; the same inputs always do."""
    assert RECIPE.inputs
    assert f"dlperf/mine:{RECIPE.inputs[7:23]}" == TAG
    tags = [recipe.tag for recipe in (RECIPE, *CHANGED)]
    assert None not in tags
    assert len(set(tags)) == len(tags)
    same = IMAGE.model_copy(update={"description": "words", "requires": ("torch",)})
    elsewhere = LOADED.model_copy(update={"archive": "http://other.example/base.tar"})
    assert replace(RECIPE, downloads={"http://other.example/x": DIGEST, URL: SUM}).tag == TAG
    assert replace(RECIPE, image=same).tag == TAG
    assert replace(LOOKED_INTO, image=elsewhere).tag == LOOKED_INTO.tag


@pytest.mark.parametrize(
    ("recipe", "needed"),
    [
        (replace(RECIPE, base_digest=None), (URL,)),
        (replace(RECIPE, downloads={}), (URL,)),
        (replace(RECIPE, image=WITH_WHEEL), (URL, WHEEL)),
        (UNKNOWN, (ARCHIVE,)),
    ],
)
def test_an_image_has_no_tag_until_its_inputs_are_known(
    recipe: ImageRecipe, needed: tuple[str, ...]
) -> None:
    assert recipe.tag is None
    assert recipe.needed == needed


Held = Mapping[str, HeldImage | None]
NOWHERE = dict.fromkeys(("vs001", "vs002", "vs003"))
HOLDINGS: dict[str, tuple[ImageRecipe, Held]] = {
    "no node has it": (RECIPE, NOWHERE),
    "its download is here": (CACHED, NOWHERE),
    "some nodes lack it or have another": (
        RECIPE,
        {"vs001": None, "vs002": FIRST, "vs003": SECOND},
    ),
    "two nodes built it, and the second is known": (
        replace(RECIPE, before=replace(RECORD, id=TWO)),
        {"vs001": FIRST, "vs002": SECOND},
    ),
    "two nodes built it, and neither is known": (
        replace(RECIPE, before=replace(RECORD, id=SUM)),
        {"vs001": FIRST, "vs002": SECOND},
    ),
    "one id and other content": (RECIPE, {"vs001": FIRST, "vs002": replace(FIRST, content=SUM)}),
    "an image without a label has its tag": (
        replace(RECIPE, before=replace(RECORD, id=TWO)),
        {"vs001": UNLABELED, "vs002": FIRST},
    ),
    "an image of other inputs has its tag": (RECIPE, {"vs001": FOREIGN, "vs002": FIRST}),
    "only other images have its tag": (CACHED, {"vs001": None, "vs002": FOREIGN}),
    "only an image without a label has its tag": (CACHED, {"vs001": None, "vs002": UNLABELED}),
    "a bundle has it": (BUNDLED, {"vs001": SECOND, "vs002": None, "vs003": FIRST}),
    "a bundle has it, and a node an image of other inputs": (
        replace(RECIPE, bundled={TAG: SECOND}),
        {"vs001": FOREIGN, "vs002": SECOND},
    ),
    "nothing is known": (
        replace(RECIPE, base_digest=None, downloads={}),
        {"vs001": None, "vs002": None},
    ),
    "a download is not known": (replace(RECIPE, downloads={}), {"vs001": None}),
    "the base is not known": (replace(RECIPE, base_digest=None), {"vs001": None}),
    "an archive is not known": (UNKNOWN, {"vs001": None}),
    "an archive's base is known": (LOOKED_INTO, {"vs001": None}),
    "an archive and its base are known": (
        replace(LOOKED_INTO, downloads={ARCHIVE: SUM}),
        {"vs001": None},
    ),
    "an archive's image is in a bundle": (
        replace(LOOKED_INTO, bundled={str(LOOKED_INTO.tag): FIRST}),
        {"vs001": None},
    ),
}


def test_actions_bring_one_image_to_every_node(snapshot: SnapshotAssertion) -> None:
    """It is built once and carried; what is not known is found out first."""
    found = {}
    for name, (recipe, there) in HOLDINGS.items():
        actions = images.actions(recipe, there)
        found[name] = [
            "  ".join(filter(None, astuple(action))).replace(str(recipe.tag), "TAG")
            for action in actions
        ]
    assert found == snapshot


@pytest.mark.parametrize(
    ("recipe", "there"),
    [
        (RECIPE, {"vs001": FIRST, "vs002": FIRST}),
        (RECIPE, {"vs001": FIRST, "vs002": OTHERWISE}),
        (replace(RECIPE, bundled={TAG: OTHERWISE}), {"vs001": FIRST, "vs002": OTHERWISE}),
        (LOOKED_INTO, {"vs001": HeldImage(TWO, LOOKED_INTO.inputs, TWO)}),
    ],
    ids=["one-id", "two-ids", "bundle", "archive"],
)
def test_nothing_is_done_where_every_node_has_the_image(recipe: ImageRecipe, there: Held) -> None:
    assert images.actions(recipe, there) == ()


BEFORE = replace(RECORD, id=ONE, ids={"b": TWO})


@pytest.mark.parametrize(
    ("ids", "before", "known"),
    [
        ({"a": ONE, "b": TWO, "c": ONE}, None, (ONE, {"b": TWO})),
        ({"b": TWO, "c": ONE}, BEFORE, (ONE, {"b": TWO})),
        ({"b": TWO}, BEFORE, (ONE, {"b": TWO})),
        ({"a": TWO, "b": TWO}, BEFORE, (ONE, {"a": TWO, "b": TWO})),
        ({"a": ONE}, BEFORE, (ONE, {"b": TWO})),
        ({"b": ONE, "c": ONE}, BEFORE, (ONE, {})),
        ({"a": SUM, "b": SUM}, BEFORE, (SUM, {})),
    ],
)
def test_an_image_keeps_its_id_while_a_node_knows_it_by_that_id(
    ids: dict[str, str], before: ImageRecord | None, known: tuple[str, dict[str, str]]
) -> None:
    """Whichever node is first; after a new build it is the first node's."""
    assert images.known_as(ids, before) == known


def test_the_content_of_an_image_is_its_layers_and_settings() -> None:
    """Their order and empty settings do not count."""
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
