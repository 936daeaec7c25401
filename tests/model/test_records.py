"""Records of the program: requests, cases, rates, sites, processes, and the events of a sweep."""

import random
from array import array
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.logs import DLLOGGER, reader
from orchestrator.model.attempt import Request
from orchestrator.model.case import AXES, Case
from orchestrator.model.experiment import Axes, CaseEntry, Exclusion
from orchestrator.model.log import reduce_rates
from orchestrator.model.plan import Seat
from orchestrator.model.process import Holder, ProcessIdentity
from orchestrator.model.site import DataDigest, Finding, ImageRecord, NodeFacts, Site
from orchestrator.model.sweep import Adopted, Ended, Event, History, Intent, by_trial
from orchestrator.model.text import shape
from orchestrator.verifying import formulas
from tests.checks.facts import FACTS, HOST

SEATS = tuple(Seat(f"n{at}", f"10.0.0.{at}", (0, 1), None, (), {}) for at in range(1, 5))


@pytest.mark.parametrize(
    ("nodes", "prefer", "names"),
    [
        (2, (), "n1 n2"),
        (1, ("n3", "n1"), "n3"),
        (2, ("n4", "n2", "n1"), "n2 n4"),
        (3, ("n4",), "n1 n2 n4"),
        (9, ("n4",), "n1 n2 n3 n4"),
    ],
)
def test_preferred_nodes_are_taken_first_and_stay_in_rank_order(
    nodes: int, prefer: tuple[str, ...], names: str
) -> None:
    request = Request("t", nodes, 1, (), (20_000,), 60.0, prefer)
    assert [seat.node for seat in request.seated(SEATS)] == names.split()


ONE = Case(nodes=2, gpus_per_node=8, micro_batch_size=4, precision="fp32", device="cuda")


@pytest.mark.parametrize("name", AXES)
def test_an_axis_is_known_to_playbooks_documents_and_verify(name: str) -> None:
    """Verify's formula of the global batch shares no code with that of the case."""
    assert tuple(field.name for field in fields(Case) if field.default == 1) == AXES
    changed: dict[str, Any] = {name: 2}
    other = replace(ONE, **changed)
    assert all(name in model.model_fields for model in (Axes, CaseEntry, Exclusion))
    assert other.document()[name] == 2
    assert other.comparable != ONE.comparable
    assert formulas.global_batch(other.document()) == other.global_batch_size


def test_rates_of_many_steps_become_at_most_120_points() -> None:
    """Of every tenth iteration from 10 to 2500, three at a time; one is left for the last point."""
    points = reduce_rates(10, 10, array("d", range(1, 251)))
    assert len(points) == 84
    assert points[:2] == ((10, 30, 1, 2, 3), (40, 60, 4, 5, 6))
    assert points[-1] == (2500, 2500, 250, 250, 250)
    assert reduce_rates(1, 2, [8.0, 6.0]) == ((1, 1, 8, 8, 8), (3, 3, 6, 6, 6))


def test_a_long_log_keeps_only_the_points_that_are_shown() -> None:
    """Its 5,000 rates are 120 points of 42 steps, the last of 2."""
    dice = random.Random(1)
    values = [round(dice.uniform(90, 110), 9) for _ in range(5000)]
    step = b"DLL 2020-12-16 11:00:00.000000 - Epoch: 0 Iteration: %d  train.loss : 7.1 "
    step += b" train.total_ips : %.9f img/s\n"
    log = b"".join(step % row for row in enumerate(values, 1))
    trace = reader(DLLOGGER)([log], None).trace
    assert len(trace) == 120
    assert trace == reduce_rates(1, 1, values)


RECORD = ImageRecord(
    name="ngc-pytorch-20.03",
    base="nvcr.io/nvidia/pytorch:20.03-py3",
    base_digest="sha256:" + "1" * 64,
    id="sha256:" + "2" * 64,
    tag="dlperf/ngc-pytorch-20.03:3333333333333333",
    inputs_digest="3" * 64,
    code="5cc03ca",
    python="3.6.9",
    locked=True,
    ids={"n2": "sha256:" + "5" * 64},
)
SEEN = replace(
    FACTS,
    host=replace(HOST, addresses={"ib0": ("10.0.0.1",)}),
    ofed="4.9-0.1.7.0",
    data={"imagenet": "present"},
)
SITE = Site(
    version=2,
    cluster="testers",
    cluster_digest="d",
    inventory="/inventory/testers.yaml",
    observed_at="2020-09-15T14:28:53Z",
    nodes={"n1": SEEN, "n2": NodeFacts(HOST)},
    findings=(),
    images={RECORD.name: RECORD},
    data={"imagenet": {"n1": DataDigest("/data/image", "4" * 64, 1, 2, None, None, False)}},
)


def test_a_site_is_read_as_it_was_written() -> None:
    """Facts, images and digests, also what was not known; images may differ in id by node."""
    adapter = shape(Site)
    assert adapter.validate_json(adapter.dump_json(SITE)) == SITE
    assert [RECORD.on(node)[7:10] for node in ("n1", "n2", "n3")] == ["222", "555", "222"]


def test_a_site_without_images_and_data_sets_is_read() -> None:
    text = (
        b'{"version": 2, "cluster": "c", "cluster_digest": "d", "inventory": "i",'
        b' "observed_at": "t", "nodes": {}, "findings": []}'
    )
    site = shape(Site).validate_json(text)
    assert (site.images, site.data) == ({}, {})


def test_findings_that_provisioning_alone_makes_are_also_kept_apart() -> None:
    """A sweep, which does not repeat those checks, takes them from there."""
    seen = Finding("error", "MEMLOCK", "n1", "64 KiB", "no limit", "raise it")
    between = replace(seen, code="PORT-BLOCKED")
    site = replace(SITE, findings=(replace(seen, code="BUSY"),))
    site = site.with_provisioned(seen).with_provisioned(between)
    assert [finding.code for finding in site.findings] == ["BUSY", "MEMLOCK", "PORT-BLOCKED"]
    assert site.provisioned == (seen, between)


BOOT = "0f4c8d3e-4a31-4a29-9a0f-0d6f3b2c1a55"
PROCESS = ProcessIdentity("vs001", 4242, "987654", BOOT)
# proc(5): the name may hold blanks and brackets; field 22 is the start time.
STAT = b"4242 (a b) c) S 1 4242 4242 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3\n"
HOLDER = Holder(PROCESS, "root", "2026-11-21T10:00:00.000+00:00", "/home/root/.dlperf")


def test_a_process_is_identified_by_its_start_and_its_boot() -> None:
    """Another start, another boot, a zombie or no process at all is not this process."""
    assert PROCESS.is_shown_by(STAT, BOOT)
    assert not replace(PROCESS, started="987655").is_shown_by(STAT, BOOT)
    assert not PROCESS.is_shown_by(STAT, BOOT.replace("0", "1"))
    assert not PROCESS.is_shown_by(STAT.replace(b") S ", b") Z "), BOOT)
    assert not PROCESS.is_shown_by(b"", BOOT)


def test_the_holder_of_a_lock_is_read_as_it_was_written() -> None:
    assert Holder.read(HOLDER.record()) == HOLDER
    assert str(HOLDER) == "pid 4242 of root on vs001 since 2026-11-21T10:00:00.000+00:00"


@given(st.integers(0, len(HOLDER.record()) - 1).map(lambda end: HOLDER.record().rstrip()[:end]))
def test_a_lock_that_is_being_written_names_no_holder(text: str) -> None:
    assert Holder.read(text) is None


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"process": 7}', '{"process": {}}'])
def test_a_lock_of_another_form_names_no_holder(text: str) -> None:
    assert Holder.read(text) is None


def intent(attempt: int, trial: str = "t", at: str = "") -> Intent:
    return Intent(at=at, trial=trial, attempt=attempt, port=23332 + attempt, log=f"{trial}.log")


def ended(attempt: int, state: str, at: str = "") -> Ended:
    return Ended(at=at, trial="t", attempt=attempt, state=state)


LOST, VALID = ended(1, "infra-lost"), ended(2, "valid")


@pytest.mark.parametrize(
    ("events", "attempts", "opened", "state"),
    [
        ((intent(1), Adopted(at="", trial="t", attempt=1)), 1, (1,), "planned"),
        ((intent(1), ended(1, "valid")), 1, (), "valid"),
        # An attempt stays open beside later ones: a node of it was left out when they ran.
        ((intent(1), intent(2), VALID), 2, (1,), "valid"),
        # The last attempt decides, whenever an earlier one is closed.
        ((intent(1), intent(2), VALID, LOST), 2, (), "valid"),
        ((intent(1), LOST, intent(1, "u"), intent(2), VALID), 2, (), "valid"),
    ],
    ids=["adopted", "ended", "beside", "closed-later", "again"],
)
def test_an_attempt_is_open_from_its_intent_to_its_end(
    events: tuple[Event, ...], attempts: int, opened: tuple[int, ...], state: str
) -> None:
    found = by_trial(events)["t"]
    assert (found.attempts, found.open, found.state) == (attempts, opened, state)
    assert found.closed == {event.attempt: event for event in events if isinstance(event, Ended)}


@pytest.mark.parametrize(("is_bound", "opened"), [(True, (2,)), (False, ())])
def test_an_attempt_known_only_by_its_folder_is_open_if_it_was_bound(
    is_bound: bool, opened: tuple[int, ...]
) -> None:
    """Its number is not used again, even if no task of it was started."""
    found: History = by_trial((intent(1), ended(1, "valid")))["t"]
    found.found[2] = is_bound
    assert (found.attempts, found.open) == (2, opened)


def test_attempts_last_from_their_intent_to_their_end() -> None:
    """Open ones have no end yet; an attempt without an intent has no span."""
    end = ended(1, "failed", at="10:01")
    found = by_trial((intent(1, at="10:00"), end, intent(2, at="10:02")))["t"]
    assert found.spans() == (("10:00", "10:01"), ("10:02", ""))
    assert by_trial((end,))["t"].spans() == ()
    assert (History().attempts, History().spans()) == (0, ())
