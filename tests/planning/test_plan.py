"""Plans: golden plans of the shipped playbooks, and rules that every plan follows."""

import difflib
import json
import os
import re
import subprocess
from dataclasses import replace

import pytest

from orchestrator import errors
from orchestrator.launchers import replicate
from orchestrator.model.attempt import Allocation, GangEnd, TaskEnd
from orchestrator.model.image import Program
from orchestrator.model.plan import Command, Placement, Plan, Seat
from orchestrator.planning import bind, plan
from tests import ROOT
from tests.planning.recipes import (
    AMP,
    CASE,
    IN_IMAGE,
    ON_NODE,
    TWICE,
    cluster,
    first,
    recipe,
    seats,
    shipped,
    trial,
)

# Seed 003, "multi-node test": what NODE1 prints that it starts for the 4-node FP32 run.
SEED_COMMAND = (
    "python /workspace/rn50/multiproc.py --nnodes 4 --node_rank 0 --nproc_per_node 8"
    " --master_addr 10.11.0.2 --master_port=22333 /workspace/rn50/main.py --data-backend dali-cpu"
    " --raport-file /workspace/rn50/raport.json -j8 -p 1 --lr 1.024 --optimizer-batch-size -1"
    " --warmup 8 --arch resnet50 -c fanin --label-smoothing 0.1 --lr-schedule cosine --mom 0.125"
    " --wd 3.0517578125e-05 --workspace /workspace/rn50 -b 128 --epochs 1 --prof 121"
    " --training-only --no-checkpoints /data/image"
)


@pytest.mark.parametrize(
    ("playbook", "inventory", "program"),
    [
        ("rn50-fp32", "v100x4", IN_IMAGE),
        ("rn50-amp", "v100x4", IN_IMAGE),
        ("rn50-amp-static", "v100x4", IN_IMAGE),
        ("smoke", "local", ON_NODE),
    ],
)
def test_a_shipped_playbook_gives_its_golden_plan(
    playbook: str, inventory: str, program: Program
) -> None:
    """A person has read every argv, environment, mount, port and log name of these files."""
    found = shipped(playbook, inventory, program)
    whole = plan.build(found)
    built = bind.describe(whole, [bind.first(found, each, seats(found)) for each in whole.trials])
    golden = json.loads((ROOT / f"tests/golden/{playbook}.json").read_text(encoding="utf-8"))
    before, now = (json.dumps(document, indent=1).splitlines() for document in (golden, built))
    changed = difflib.unified_diff(before, now, f"tests/golden/{playbook}.json", "now", lineterm="")
    assert built == golden, "\n".join(("the plan is not the golden one:", *changed))


def test_the_leader_starts_the_command_line_that_the_seed_prints() -> None:
    """Word for word, with the seed's port; other nodes differ in their node_rank alone."""
    found = shipped("rn50-fp32", "v100x4", IN_IMAGE)
    four = trial(plan.build(found), "4n8g-r50_b128_fp32_5")
    assert four.log == "4n8g/r50_b128_fp32_5.log"  # the seed's log is ngc/pytorch/ and this
    given = Allocation(tuple(seats(found)), 22333)
    tasks = bind.bind(found, four, given, 1, "s").tasks
    assert " ".join(tasks[0].argv) == SEED_COMMAND
    assert [task.node for task in tasks] == ["vs001", "vs002", "vs003", "vs004"]
    for node_rank, task in enumerate(tasks):
        at = task.argv.index("--node_rank") + 1
        assert (task.node_rank, task.argv[at]) == (node_rank, str(node_rank))
        leader = replace(tasks[0], node=task.node, node_rank=node_rank)
        assert replace(task, argv=(*task.argv[:at], "0", *task.argv[at + 1 :])) == leader


def test_ranks_of_a_single_node_meet_on_it() -> None:
    """At the scripts' own defaults, 127.0.0.1 and port 29500."""
    argv = first(shipped("rn50-fp32", "v100x4", IN_IMAGE)).tasks[0].argv
    assert argv[argv.index("--master_addr") + 1] == "127.0.0.1"
    assert "--master_port=29500" in argv


def test_consecutive_trials_and_attempts_have_different_ports() -> None:
    """A port that the trial before still holds must not stop the next one."""
    grid = {**AMP, "placement": ["2x4"], "precision": ["amp", "fp32"]}
    found = recipe(grid=grid, params={"loss_scale": 128})
    built = plan.build(found).trials
    bound = [bind.first(found, planned, seats(found)) for planned in built]
    assert [attempt.port for attempt in bound] == [22333, 22334, 22335, 22336]
    for attempt in bound:
        assert all(f"--master_port={attempt.port}" in task.argv for task in attempt.tasks)
    first, second = (bind.request(found, built[0], number).ports for number in (1, 2))
    assert first[:2] == (22333, 22334)
    assert len({*first, *second}) == 200


@pytest.mark.parametrize(
    ("begin", "steps", "port"),
    [(29999, 0, 29999), (29999, 1, 20000), (22333, 9999, 22332), (29500, 500, 20000)],
)
def test_ports_wrap_around_below_those_of_outgoing_connections(
    begin: int, steps: int, port: int
) -> None:
    assert bind.port_after(begin, steps) == port


def test_trials_run_repeat_by_repeat() -> None:
    """All cases once, then all again: a drift of the machines spreads over the cases."""
    built = plan.build(recipe(grid={**AMP, "placement": ["1x1", "2x4"]}))
    assert [(planned.name, planned.repeat, planned.log) for planned in built.trials] == [
        ("1n1g-r50_b256_amp_1", 1, "1n1g/r50_b256_amp_1.log"),
        ("2n4g-r50_b256_amp_1", 1, "2n4g/r50_b256_amp_1.log"),
        ("1n1g-r50_b256_amp_2", 2, "1n1g/r50_b256_amp_2.log"),
        ("2n4g-r50_b256_amp_2", 2, "2n4g/r50_b256_amp_2.log"),
    ]


@pytest.mark.parametrize(("device", "gpus"), [("cuda", (3, 1)), ("cpu", ())])
def test_tasks_take_the_first_gpus_that_the_inventory_lists(
    device: str, gpus: tuple[int, ...]
) -> None:
    listed = recipe(cases=[{**CASE, "placement": "1x2"}], device=device)
    where = cluster(1, gpus={"count": 4, "use": [3, 1, 0]})
    task = first(replace(listed, cluster=where)).tasks[0]
    assert task.gpus == gpus
    assert task.env["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, gpus))


@pytest.mark.parametrize(
    ("said", "logs"),
    [
        (  # DLPerf's scripts split a log's name at its underscores: none is added.
            {"grid": {**AMP, "params": {"loss_scale": ["dynamic", 128]}}, "params": {"threads": 2}},
            [
                f"1n1g/r50_b256_amp-lossscale{scale}_{repeat}.log"
                for repeat in (1, 2)
                for scale in ("dynamic", "128")
            ],
        ),
        (
            {
                "cases": [
                    CASE,
                    {**CASE, "accumulation_steps": 2},
                    {**CASE, "params": {"threads": 3}},
                ]
            },
            [
                "1n1g/r50_b4_fp32-accumulationsteps1_1.log",
                "1n1g/r50_b4_fp32-accumulationsteps2_1.log",
                "1n1g/r50_b4_fp32-accumulationsteps1-threads3_1.log",
            ],
        ),
        (  # Without their signs both are 1e22.
            {"grid": {**AMP, "placement": ["1x1", "1x2"], "params": {"loss_scale": [1e-22, 1e22]}}},
            [
                "1n1g/r50_b256_amp-lossscale1e22-case1_1.log",
                "1n2g/r50_b256_amp-lossscale1e22-case2_1.log",
                "1n1g/r50_b256_amp-lossscale1e22-case3_1.log",
                "1n2g/r50_b256_amp-lossscale1e22-case4_1.log",
            ],
        ),
        (
            {"grid": {**AMP, "placement": ["1x1", "1x4"], "micro_batch_size": [4, 8]}},
            [f"1n{gpus}g/r50_b{batch}_amp_1.log" for batch in (4, 8) for gpus in (1, 4)],
        ),
    ],
    ids=["parameters", "axes", "equal-letters", "nothing-to-add"],
)
def test_names_of_logs_have_what_distinguishes_their_cases(
    said: dict[str, object], logs: list[str]
) -> None:
    found = [planned.log for planned in plan.build(recipe(**said)).trials]
    assert found[: len(logs)] == logs
    assert len({*found}) == len(found)


def test_a_replicated_command_is_the_same_on_every_node_and_sees_no_proxy() -> None:
    """DLPerf issue 103: with a proxy in the environment, no rank finds another."""
    nodes = tuple(Seat(f"n{n}", f"10.0.0.{n}", (0,), None, (), {}) for n in (1, 2, 3))
    placement = Placement(nodes, gpus_per_node=1, port=50051, code="/code", python="python3")
    tasks = replicate(Command(("python3", "-m"), ("gpt", "--num-nodes", "3")), placement)
    assert [task.node for task in tasks] == ["n1", "n2", "n3"]
    assert len({task.argv for task in tasks}) == 1
    assert tasks[0].argv[-5:] == ("python3", "-m", "gpt", "--num-nodes", "3")
    start, *_ = replicate(Command((), ("env",)), placement)
    proxies = ("http_proxy", "HTTPS_PROXY", "all_proxy", "HTTP_PROXY", "ftp_proxy")
    env = {**dict.fromkeys(proxies, "http://10.0.0.9:3128"), "KEPT": "yes", "PATH": os.defpath}
    said = subprocess.run(start.argv, env=env, capture_output=True, text=True, check=True).stdout
    assert "proxy" not in said.lower()
    assert "KEPT=yes" in said


def test_a_task_has_a_name_and_a_folder_of_its_own() -> None:
    """Of sweep, trial, attempt and rank: no task of another attempt is mistaken for it."""
    found = recipe(grid={**AMP, "placement": ["2x4"]})
    given = Allocation(tuple(seats(found)), 20_000)
    attempt = bind.bind(found, plan.build(found).trials[0], given, 2, "20200915-ours")
    assert [attempt.token(task) for task in attempt.tasks] == [
        "dlp-20200915-ours-2n4g-r50_b256_amp_1-a2-r0",
        "dlp-20200915-ours-2n4g-r50_b256_amp_1-a2-r1",
    ]
    assert attempt.nodes == ("n1", "n2")
    assert attempt.allocation == given
    folder = "/var/tmp/sweeps/20200915-ours/attempts/2n4g-r50_b256_amp_1/a2"
    assert attempt.folder(attempt.tasks[1]) == folder


def test_an_attempt_has_the_ids_of_the_image_on_its_own_nodes() -> None:
    program = replace(IN_IMAGE, ids={"n1": "sha256:11", "n9": "sha256:99"})
    found = replace(recipe(grid={**AMP, "placement": ["2x4"]}), program=program)
    attempt = bind.first(found, plan.build(found).trials[0], seats(found))
    assert (attempt.image, attempt.images) == (IN_IMAGE.digest, {"n1": "sha256:11"})


def test_variables_of_playbook_and_inventory_reach_every_task() -> None:
    """The playbook's override the inventory's; the workload's own stay; numbers become text."""
    grid = {**AMP, "placement": ["2x4"]}
    ours = recipe(grid=grid, env={"NCCL_ALGO": "Ring", "NCCL_MIN_NCHANNELS": 4})
    where = ours.cluster.model_copy(update={"env": {"NCCL_ALGO": "Tree", "UCX_TLS": "rc"}})
    for task in first(replace(ours, cluster=where)).tasks:
        added = {"NCCL_ALGO": "Ring", "NCCL_MIN_NCHANNELS": "4", "UCX_TLS": "rc"}
        assert added.items() <= task.env.items()
        assert task.env["NCCL_DEBUG"] == "INFO"


@pytest.mark.parametrize(
    ("went", "skew"), [((10.0, 10.25, 9.5), 0.75), ((10.0,), 0.0), ((10.0, None), None)]
)
def test_the_start_skew_is_known_only_if_every_gate_opened(
    went: tuple[float | None, ...], skew: float | None
) -> None:
    ends = tuple(TaskEnd(f"n{rank}", rank, 0, "exited", 0, "", at) for rank, at in enumerate(went))
    assert GangEnd(reason="done", ends=ends).start_skew_s == skew


def test_trials_are_selected_by_patterns_of_placements_and_names() -> None:
    """Several patterns add up; a pattern without a case is refused."""
    trials = plan.build(shipped("rn50-fp32", "v100x4", IN_IMAGE)).trials
    assert plan.select(trials, ()) == trials
    for patterns, placements in (
        (("?x8",), {"1x8", "2x8", "4x8"}),
        (("1x1", "4x*"), {"1x1", "4x8"}),
    ):
        selected = plan.select(trials, patterns)
        assert {planned.case.placement for planned in selected} == placements
    names = [planned.name for planned in plan.select(trials, ("4n8g-*_2",))]
    assert names == ["4n8g-r50_b128_fp32_2"]
    for unfit in ("9x*", ""):
        with pytest.raises(errors.UsageError, match=f"no case matches {re.escape(repr(unfit))}"):
            plan.select(trials, ("1x1", unfit))


def test_patterns_are_split_at_commas_unless_they_are_the_name_of_a_case() -> None:
    """A case may be called `MP_[1,2]`: that is neither two patterns nor a set of characters."""
    trials = plan.build(shipped("rn50-fp32", "v100x4", IN_IMAGE)).trials
    named = (replace(trials[0], name_of_case="MP_[1,2]"), *trials[1:])
    assert plan.select(named, ("MP_[1,2]",)) == named[:1]
    chosen = plan.select(named, ("1x8, 2x8", "MP_[1,2]"))
    placements = {planned.case.placement for planned in chosen[1:]}
    assert (chosen[0], placements) == (named[0], {"1x8", "2x8"})


FOUR_CASES = {"placement": ["1x2", "1x1"], "precision": ["fp32", "amp"], "micro_batch_size": [256]}


def with_canary(repeats: object, canary: object) -> Plan:
    method = {**TWICE, "repeats": repeats, "canary": canary}
    return plan.build(recipe(grid=FOUR_CASES, method=method))


@pytest.mark.parametrize(
    ("repeats", "canary", "places"),
    [
        (5, True, {0: "start", 10: "middle", 20: "end"}),
        # Half of the trials that run for certain: 3 of each case, not 9.
        ({"min": 3, "max": 9, "until_interval": "1%"}, {"at": ["middle"]}, {6: "middle"}),
        (5, False, {}),
    ],
)
def test_a_canary_runs_at_start_middle_and_end(
    repeats: object, canary: object, places: dict[int, str]
) -> None:
    """Its place is the number of other trials before it."""
    whole = with_canary(repeats, canary)
    order = [planned.canary for planned in whole.trials]
    assert {
        sum(not before for before in order[:place]): canary
        for place, canary in enumerate(order)
        if canary
    } == places
    assert [planned.ordinal for planned in whole.trials] == list(range(len(order)))
    assert not any(planned.canary for trials in whole.by_case.values() for planned in trials)


@pytest.mark.parametrize(
    ("canary", "placement"), [(True, "1x1"), ({"case": "1x2"}, "1x2"), ({"case": "1x*"}, "1x1")]
)
def test_a_canary_repeats_the_smallest_case_that_fits(canary: object, placement: str) -> None:
    """Its logs are outside logs/*/*.log, which scripts of DLPerf read."""
    canaries = [planned for planned in with_canary(5, canary).trials if planned.canary]
    assert {planned.case.placement for planned in canaries} == {placement}
    token = placement.replace("x", "n") + "g"
    assert canaries[1].name == f"canary-{token}-r50_b256_fp32_2"
    assert canaries[1].log == f"canary/{token}/r50_b256_fp32_2.log"


@pytest.mark.parametrize(("canary", "shown"), [(True, 3), (False, 0)])
def test_only_trials_of_a_canary_have_a_place_in_documents(canary: bool, shown: int) -> None:
    found = recipe(grid=FOUR_CASES, method={**TWICE, "canary": canary})
    whole = plan.build(found)
    bound = [bind.first(found, planned, seats(found)) for planned in whole.trials]
    assert str(bind.describe(whole, bound)).count("'canary': '") == shown
