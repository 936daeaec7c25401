"""Findings about a machine, its Docker engine, containers and data sets, on and beyond borders."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from orchestrator import checks, errors
from orchestrator.checks import data as data_checks
from orchestrator.checks import machine, provisioned
from orchestrator.checks.machine import Demands
from orchestrator.model.facts import ContainerFacts, NodeAnswer, Silent, VerbsFacts
from orchestrator.model.node import Container
from orchestrator.model.site import DataDigest, DataState, Finding, ImageRecord
from tests.checks.facts import (
    HOST,
    SEED,
    V100,
    WIRES,
    changed,
    cluster,
    driver,
    hca,
    node,
    table,
)
from tests.probes.answers import DEBIAN

PROXY = {"proxies": ("http_proxy",)}
MODULES = {"missing_modules": ("torch", "numpy")}


def host(
    change: Mapping[str, object] | None = None, demands: Demands | None = None, **defaults: object
) -> Iterator[Finding]:
    """Judge a machine that is on every border, but for the change."""
    return machine.host(node(**defaults), changed(HOST, **change or {}), demands or Demands())


test_machine = table(
    border=(host(interface="ib0"), ""),
    no_interface_named=(host({"interfaces": ()}), ""),
    disk=(host({"free_disk_mib": 1023}), "error DISK-FULL"),
    disk_here=(
        host({"free_disk_mib": 0}, transport="local", runtime="process"),
        "error DISK-FULL",
    ),
    open_files=(host({"open_files": 255}), "error LIMITS"),
    open_files_unlimited=(host({"open_files": None}), ""),
    load=(host({"load": 24.01}), "warning BUSY"),
    interface=(host({"interfaces": ("lo", "ib01")}, interface="ib0"), "error INTERFACE-MISSING"),
    no_interface=(host({"interfaces": ()}, interface="ib0"), "error INTERFACE-MISSING"),
    modules=(host(MODULES, Demands("demo")), "error MODULE-MISSING, error MODULE-MISSING"),
    modules_of_no_extra=(host({"missing_modules": ("numpy",)}), "error MODULE-MISSING"),
    modules_in_doubt=(
        host({"missing_modules": ("numpy",)}, Demands("demo", is_certain=False)),
        "warning MODULE-MISSING",
    ),
    everything=(
        host(
            {"free_disk_mib": 0, "open_files": 0, "load": 99.0, "interfaces": (), **MODULES},
            interface="ib0",
        ),
        "error MODULE-MISSING, error MODULE-MISSING, error DISK-FULL, error LIMITS, warning BUSY,"
        " error INTERFACE-MISSING",
    ),
    # A container has limits of its own; a proxy disturbs pulls only
    memlock=(host({"memlock_kib": 64}, runtime="process", hcas=[hca()]), "error MEMLOCK"),
    memlock_unlimited=(host({"memlock_kib": None}, runtime="process", hcas=[hca()]), ""),
    memlock_without_adapters=(host({"memlock_kib": 64}, runtime="process"), ""),
    memlock_of_containers=(host({"memlock_kib": 64}, runtime="docker", hcas=[hca()]), ""),
    shm=(host({"shm_mib": 64}, runtime="process", gpus={}), "error SHM-SMALL"),
    shm_border=(host({"shm_mib": 65}, runtime="process", gpus={}), ""),
    shm_without_gpus=(host({"shm_mib": 0}, runtime="process"), ""),
    proxy=(host(PROXY, runtime="docker"), "warning PROXY"),
    proxy_without_engine=(host(PROXY, runtime="process"), ""),
)


def silent(code: str, message: str = "oh", **defaults: object) -> Iterator[Finding]:
    return machine.docker(node(user="ada", **defaults), Silent(code, message), Container())


def engine(
    change: dict[str, object], access: str = "none", **defaults: object
) -> Iterator[Finding]:
    started = Container.model_validate({"gpu_access": access})
    return machine.docker(node(**defaults), changed(DEBIAN, **change), started)


def gpus(access: str, **change: object) -> Iterator[Finding]:
    return engine(change, access, gpus={"count": 8})


test_engine = table(
    absent=(silent("ABSENT"), "error DOCKER-MISSING"),
    hung=(silent("HUNG"), "error DOCKER-HUNG"),
    hung_without_words=(silent("HUNG", ""), "error DOCKER-HUNG"),
    denied=(silent("DENIED"), "error DOCKER-PERM"),
    down=(silent("DOWN"), "error DOCKER-DOWN"),
    foreign=(silent("FOREIGN"), "error DOCKER-FOREIGN"),
    refused=(silent("REFUSED"), "error DOCKER-API"),
    # Installing Docker would not help
    no_sudo=(silent("ABSENT", "sh: 1: sudo: not found", sudo=True), "error DOCKER-MISSING"),
    not_asked=(machine.docker(node(), None, Container()), ""),
    fit=(engine({}), ""),
    disk=(engine({"free_mib": 1023}), "error DISK-FULL"),
    disk_unknown=(engine({"free_mib": None}), "error DISK-FULL"),
    proxy=(engine({"proxies": ("HttpProxy",)}), "warning PROXY"),
    no_gpus=(engine({"gpu_hook": False}, "auto"), ""),
    any_way=(gpus("auto"), ""),
    no_way=(gpus("auto", gpu_hook=False), "error GPU-RUNTIME"),
    hook=(gpus("gpus"), ""),
    no_cdi=(gpus("cdi"), "error GPU-RUNTIME"),
    cdi=(gpus("cdi", cdi=True), ""),
    no_runtime=(gpus("runtime"), "error GPU-RUNTIME"),
    runtime=(gpus("runtime", runtimes=("nvidia", "runc")), ""),
    no_access=(gpus("none", gpu_hook=False), "warning GPU-RUNTIME"),
)


INSIDE = ContainerFacts(
    gpus=driver(*[V100] * 8),
    infiniband=SEED,
    verbs=VerbsFacts(("mlx5_0",), ()),
    ofed="4.9-0.1.7.0",
    devices=("rdma_cm", "uverbs0"),
    memlock_kib=None,
    shm_mib=16384,
)
FIT = node(gpus={"count": 8}, hcas=[hca()], runtime="docker")
ABSENT = Silent("ABSENT", "not found")
IMAGES = node(data={"imagenet": "/data/image"}, runtime="docker")


def inside(settings: dict[str, object] | None = None, **change: object) -> Iterator[Finding]:
    """Judge a container that just has what its node needs, but for the change."""
    started = Container.model_validate(settings or {"shm_size": "16g"})
    return machine.container(FIT, changed(INSIDE, **change), started, host_ofed="4.9-0.1.7.0")


LOCKED: dict[str, object] = {"ulimits": {"memlock": 8388608}}


# Here everything must be present: nothing else will bring it.
test_container = table(
    fit=(inside({"shm_size": "16g", "ulimits": {"memlock": -1}}), ""),
    plain_node=(machine.container(node(), INSIDE, Container()), ""),
    unknown=(inside(LOCKED, memlock_kib=8192, ofed=None, gpus=None), ""),
    no_gpu_access=(inside({"gpu_access": "none"}, gpus=ABSENT), ""),
    shm=(inside(shm_mib=16383), "error SHM-SMALL"),
    gpu_count=(inside(gpus=driver(*[V100] * 7)), "error GPU-COUNT"),
    gpu_absent=(inside(gpus=ABSENT), "error GPU-RUNTIME"),
    gpu_hung=(inside(gpus=Silent("HUNG", "")), "error GPU-RUNTIME"),
    memlock=(inside(memlock_kib=64), "error MEMLOCK"),
    memlock_number=(inside(LOCKED, memlock_kib=8191), "error MEMLOCK"),
    one_device=(inside(devices=("rdma_cm",)), "error IB-DEVICE"),
    no_device=(inside(devices=()), "error IB-DEVICE"),
    no_verbs=(inside(verbs=VerbsFacts((), ())), "error IB-NO-DRIVER"),
    verbs_absent=(inside(verbs=ABSENT), "error IB-NO-DRIVER"),
    ibstat_absent=(inside(infiniband=ABSENT), "error IB-TOOLS"),
    newer_ofed=(inside(ofed="5.3-1.0.0.1"), "warning OFED-SKEW"),
    older_ofed=(inside(ofed="4.7-1.0.0.1"), "warning OFED-SKEW"),
    data=(
        machine.container(IMAGES, changed(INSIDE, data={"imagenet": "unreadable"}), Container()),
        "error DATA-MISSING",
    ),
)


@pytest.mark.parametrize(
    ("size", "mib"),
    [("16g", 16384), ("64m", 64), ("2t", 2097152), ("65536k", 64), ("67108864", 64)],
)
def test_sizes_are_read_as_docker_reads_them(size: str, mib: int) -> None:
    """Powers of 1024; a number alone is bytes."""
    started, facts = Container(shm_size=size), replace(INSIDE, shm_mib=mib)
    assert list(machine.container(node(), facts, started)) == []
    (found,) = machine.container(node(), replace(facts, shm_mib=mib - 1), started)
    assert found.code == "SHM-SMALL"


IMAGENET = DataDigest("/data/image", "ab" * 32, 1331167, 10, 1281167, 1000, False)
OTHER = replace(IMAGENET, digest="cd" * 32)


def state(state: DataState) -> Iterator[Finding]:
    return data_checks.states(IMAGES, {"imagenet": state})


def counted(name: str, files: int | None, folders: int | None) -> Iterator[Finding]:
    part = replace(IMAGENET, train_files=files, train_folders=folders)
    return data_checks.digests(name, {"n1": part})


test_data_sets = table(
    present=(state("present"), ""),
    missing=(state("missing"), "error DATA-MISSING"),
    empty=(state("empty"), "error DATA-MISSING"),
    unreadable=(state("unreadable"), "error DATA-MISSING"),
    hung=(state("hung"), "error MOUNT-HUNG"),
    differs=(
        data_checks.digests("set", {"n1": IMAGENET, "n2": OTHER, "n3": IMAGENET}),
        "error DATA-DIFF n2",
    ),
    imagenet=(counted("imagenet", 1281167, 1000), ""),
    imagenet_not_counted=(counted("imagenet", None, None), ""),
    # As in a published run: 886372 files from 698 directories
    part=(counted("ImageNet_2012", 886372, 698), "warning DATA-INCOMPLETE"),
    a_folder_less=(counted("imagenet", 1281167, 999), "warning DATA-INCOMPLETE"),
    a_file_more=(counted("imagenet", 1281168, 1000), "warning DATA-INCOMPLETE"),
    records=(counted("imagenet-tfrecord", 1024, 0), ""),
    another_set=(counted("toys", 886372, 698), ""),
)


ANSWER = NodeAnswer(
    host=changed(HOST, free_disk_mib=0, **PROXY),
    gpu=driver(replace(V100, ecc_volatile_uncorrected=1)),
    topology=replace(WIRES, links={"GPU0": {"mlx5_0": "SYS"}}),
    infiniband=Silent("HUNG", ""),
    verbs=VerbsFacts((), ()),
    ofed=None,
    docker=Silent("DOWN", "oh"),
    data={"set": "missing"},
)


def alone(answer: NodeAnswer) -> Iterator[Finding]:
    here = cluster({}, gpus={"count": 1, "use": [0]}, hcas=[hca()], data={"set": "/data/set"})
    return checks.alone(here, here.members[0], answer, Demands(driver="450.80.02"))


test_all_answers_of_a_node = table(
    answers=(
        alone(ANSWER),
        "error DISK-FULL, warning PROXY, error GPU-DRIVER-OLD, error GPU-ECC, error IB-QUERY-HUNG,"
        " warning IB-NO-DRIVER, warning HCA-FAR, error DOCKER-DOWN, error DATA-MISSING",
    ),
    # One program that fails is one finding
    silent_driver=(
        alone(replace(ANSWER, gpu=Silent("HUNG", ""), topology=Silent("HUNG", ""))),
        "error DISK-FULL, warning PROXY, error GPU-QUERY-HUNG, error IB-QUERY-HUNG,"
        " warning IB-NO-DRIVER, error DOCKER-DOWN, error DATA-MISSING",
    ),
)


@pytest.mark.parametrize(
    ("severity", "code", "blocks"),
    [
        ("error", "DISK-FULL", True),
        ("error", "DOCKER-DOWN", True),
        ("warning", "DOCKER-OLD", False),
        ("error", "GPU-COUNT", False),
    ],
)
def test_images_need_an_engine_and_room(severity: str, code: str, blocks: bool) -> None:
    """A warning, or an error of something else, keeps no image off a node."""
    finding = Finding("error" if severity == "error" else "warning", code, "vs001", "", "", "")
    assert provisioned.blocks_images([finding]) is blocks


FULL = errors.UnfitError("3 GiB free", code="DISK-FULL", node="n2", fix="free some space")
RECORD = ImageRecord(
    name="ngc",
    base="pytorch:20.03",
    base_digest="sha256:0123456789abcdef0123456789abcdef",
    id="sha256:1",
    tag="dlperf/ngc:1",
    inputs_digest="1",
    code="",
    python="3.6.10",
    locked=False,
)


test_provisioning = table(
    unfinished=(map(provisioned.report_unfinished, [[FULL]]), "error NOT-PROVISIONED all"),
    no_room=(map(provisioned.report_unfinished, [[]]), "error NOT-PROVISIONED all"),
    unprepared=(map(provisioned.report_unprepared, [FULL]), "error DISK-FULL n2"),
    unprepared_anywhere=(
        map(provisioned.report_unprepared, [errors.UnfitError("x", code="C", fix="mend it")]),
        "error C all",
    ),
    unlocked=(map(provisioned.report_unlocked, [RECORD]), "warning UNLOCKED all"),
)
