"""The plan: golden plans of the shipped playbooks, and what every plan keeps to."""

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
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import Program
from orchestrator.model.plan import Command, Placement, Seat
from orchestrator.planning import bind, plan
from tests import ROOT
from tests.planning.recipes import GRID, IN_IMAGE, ON_NODE, first, recipe, seats, shipped, trial

GOLDEN = ROOT / "tests" / "golden"
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
def test_shipped_playbook_gives_its_golden_plan(
    playbook: str, inventory: str, program: Program
) -> None:
    """Every argv, environment, mount, port and log name is the one that was read by a person."""
    found = shipped(playbook, inventory, program)
    whole = plan.build(found)
    attempts = [bind.first(found, planned, seats(found)) for planned in whole.trials]
    built = bind.describe(whole, attempts)
    golden = json.loads((GOLDEN / f"{playbook}.json").read_text(encoding="utf-8"))
    before, now = (json.dumps(document, indent=1).splitlines() for document in (golden, built))
    changed = difflib.unified_diff(before, now, f"tests/golden/{playbook}.json", "now", lineterm="")
    assert built == golden, "\n".join(("the plan is not the golden one:", *changed))


def test_leader_starts_the_command_line_that_the_seed_prints() -> None:
    """Word for word, once the port is the seed's."""
    found = shipped("rn50-fp32", "v100x4", IN_IMAGE)
    four = trial(plan.build(found), "4n8g-r50_b128_fp32_5")
    assert four.log == "4n8g/r50_b128_fp32_5.log"  # the seed's log is ngc/pytorch/ and this
    given = Allocation(tuple(seats(found)), 22333)
    assert " ".join(bind.bind(found, four, given, 1, "s").tasks[0].argv) == SEED_COMMAND


def test_nodes_of_a_gang_differ_in_node_rank_only() -> None:
    """What the seed edits by hand on each host, and nothing else, tells the four nodes apart."""
    found = shipped("rn50-fp32", "v100x4", IN_IMAGE)
    four = first(found, "4n8g-r50_b128_fp32_1")
    assert [task.node for task in four.tasks] == ["vs001", "vs002", "vs003", "vs004"]
    for node_rank, task in enumerate(four.tasks):
        at = task.argv.index("--node_rank") + 1
        assert (task.node_rank, task.argv[at]) == (node_rank, str(node_rank))
        leader = replace(four.tasks[0], node=task.node, node_rank=node_rank)
        assert replace(task, argv=(*task.argv[:at], "0", *task.argv[at + 1 :])) == leader


def test_single_node_meets_on_itself() -> None:
    """One node takes the scripts' own default, 127.0.0.1 and port 29500."""
    argv = first(shipped("rn50-fp32", "v100x4", IN_IMAGE)).tasks[0].argv
    assert argv[argv.index("--master_addr") + 1] == "127.0.0.1"
    assert "--master_port=29500" in argv


def test_first_trial_has_the_workloads_port_and_no_two_share_one() -> None:
    """A port still held by the trial before must not stop the next one."""
    grid = {**GRID, "placement": ["2x4"], "precision": ["amp", "fp32"]}
    found = recipe(grid=grid, params={"loss_scale": 128})
    bound = [bind.first(found, planned, seats(found)) for planned in plan.build(found).trials]
    assert [attempt.port for attempt in bound] == [22333, 22334, 22335, 22336]
    for attempt in bound:
        assert all(f"--master_port={attempt.port}" in task.argv for task in attempt.tasks)


def test_ports_go_round_their_range() -> None:
    """From 20000 to 29999, below those that Linux gives to outgoing connections."""
    assert bind.port_after(29999, 0) == 29999
    assert bind.port_after(29999, 1) == 20000
    assert bind.port_after(22333, 9999) == 22332
    assert bind.port_after(29500, 500) == 20000


def test_trials_run_repeat_by_repeat() -> None:
    """All cases once, then all again: a drift of the machines spreads over the cases."""
    built = plan.build(recipe(grid={**GRID, "placement": ["1x1", "2x4"]}))
    assert [planned.name for planned in built.trials] == [
        "1n1g-r50_b256_amp_1",
        "2n4g-r50_b256_amp_1",
        "1n1g-r50_b256_amp_2",
        "2n4g-r50_b256_amp_2",
    ]
    assert [planned.repeat for planned in built.trials] == [1, 1, 2, 2]
    assert [planned.log for planned in built.trials][:2] == [
        "1n1g/r50_b256_amp_1.log",
        "2n4g/r50_b256_amp_1.log",
    ]


def test_tasks_take_the_gpus_that_the_inventory_lists() -> None:
    """The first ones by the inventory's order; on CPUs none, whatever there is."""
    listed = recipe(cases=[{"placement": "1x2", "precision": "fp32", "micro_batch_size": 4}])
    node = {"name": "n1", "address": "10.0.0.1", "gpus": {"count": 4, "use": [3, 1, 0]}}
    where = Cluster.model_validate_json(json.dumps({"name": "one", "nodes": [node]}))
    task = first(replace(listed, cluster=where)).tasks[0]
    assert task.gpus == (3, 1)
    assert task.env["CUDA_VISIBLE_DEVICES"] == "3,1"
    on_cpu = listed.experiment.model_copy(update={"device": "cpu"})
    task = first(replace(listed, cluster=where, experiment=on_cpu)).tasks[0]
    assert task.gpus == ()
    assert task.env["CUDA_VISIBLE_DEVICES"] == ""


def test_logs_that_would_have_one_name_get_what_tells_them_apart() -> None:
    """Two loss scales of one placement: both names say which, and no underscore is added.

    DLPerf's scripts take a log's name apart at its underscores.
    """
    grid = {**GRID, "params": {"loss_scale": ["dynamic", 128]}}
    built = plan.build(recipe(grid=grid, params={"threads": 2}))
    assert [planned.log for planned in built.trials] == [
        f"1n1g/r50_b256_amp-lossscale{scale}_{repeat}.log"
        for repeat in (1, 2)
        for scale in ("dynamic", "128")
    ]


def test_names_stay_plain_where_nothing_is_to_be_told_apart() -> None:
    """Batch, precision and placement are in a name anyhow."""
    grid = {"placement": ["1x1", "1x4"], "precision": ["fp32", "amp"], "micro_batch_size": [4, 8]}
    logs = [planned.log for planned in plan.build(recipe(grid=grid)).trials]
    assert len(set(logs)) == len(logs) == 16
    assert not any("-" in log for log in logs)


def test_steps_and_missing_parameters_tell_logs_apart_too() -> None:
    """One case accumulates, one has a parameter that the other leaves to the program."""
    case = {"placement": "1x1", "precision": "fp32", "micro_batch_size": 4}
    cases = [case, {**case, "accumulation_steps": 2}, {**case, "params": {"threads": 3}}]
    assert [planned.log for planned in plan.build(recipe(cases=cases)).trials][:3] == [
        "1n1g/r50_b4_fp32-accumulationsteps1_1.log",
        "1n1g/r50_b4_fp32-accumulationsteps2_1.log",
        "1n1g/r50_b4_fp32-accumulationsteps1-threads3_1.log",
    ]


def test_values_that_look_alike_in_a_file_name_still_get_two_logs() -> None:
    """1e-22 and 1e+22 are both 1e22 without their signs; then the place in the playbook counts."""
    grid = {**GRID, "placement": ["1x1", "1x2"], "params": {"loss_scale": [1e-22, 1e22]}}
    logs = [planned.log for planned in plan.build(recipe(grid=grid)).trials]
    assert logs[:4] == [
        "1n1g/r50_b256_amp-lossscale1e22-case1_1.log",
        "1n2g/r50_b256_amp-lossscale1e22-case2_1.log",
        "1n1g/r50_b256_amp-lossscale1e22-case3_1.log",
        "1n2g/r50_b256_amp-lossscale1e22-case4_1.log",
    ]
    assert len(set(logs)) == len(logs)


def test_plan_can_be_narrowed_to_some_trials() -> None:
    """The rest of it stays as it was."""
    built = plan.build(recipe(grid=GRID))
    second = replace(built, trials=built.trials[1:])
    assert second.trials == built.trials[1:]
    assert replace(second, trials=built.trials) == built


def test_each_attempt_has_candidates_for_its_port_that_the_one_before_did_not_have() -> None:
    """A port that is still held does not stop the next attempt; a fixed one is the only one."""
    found = recipe(grid=GRID)
    built = plan.build(found).trials
    first, second, next_trial = (
        bind.request(found, trial, number).ports
        for trial, number in ((built[0], 1), (built[0], 2), (built[1], 1))
    )
    assert first[:2] == (22333, 22334)
    assert next_trial[0] == 22334
    assert len({*first, *second}) == 200


def test_inputs_are_plain_data() -> None:
    """They can be written as JSON, and read back they are the same."""
    said = bind.identity(recipe(grid=GRID))
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_replicated_command_is_the_same_on_every_node() -> None:
    """A program that finds its own rank is told nothing of it."""
    seats = tuple(Seat(f"n{n}", f"10.0.0.{n}", (0,), None, (), {}) for n in (1, 2, 3))
    placement = Placement(seats, gpus_per_node=1, port=50051, code="/code", python="python3")
    command = Command(agent=("python3", "-m"), program=("gpt", "--num-nodes", "3"))
    tasks = replicate(command, placement)
    assert [task.node for task in tasks] == ["n1", "n2", "n3"]
    assert len({task.argv for task in tasks}) == 1
    assert tasks[0].argv[-5:] == ("python3", "-m", "gpt", "--num-nodes", "3")


def test_a_replicated_program_sees_no_proxy() -> None:
    """DLPerf issue 103: a proxy in the environment, and no rank finds another."""
    placement = Placement((Seat("n1", "10.0.0.1", (0,), None, (), {}),), 1, 50051, "/c", "python3")
    print_env = Command(agent=(), program=("env",))
    (start,) = replicate(print_env, placement)
    proxies = ("http_proxy", "HTTPS_PROXY", "all_proxy", "HTTP_PROXY", "ftp_proxy")
    env = {**dict.fromkeys(proxies, "http://10.0.0.9:3128"), "KEPT": "yes", "PATH": os.defpath}
    said = subprocess.run(start.argv, env=env, capture_output=True, text=True, check=True).stdout
    assert [line for line in said.splitlines() if "proxy" in line.lower()] == []
    assert "KEPT=yes" in said


def test_task_carries_a_name_of_its_own() -> None:
    """Sweep, trial, attempt and rank: nothing of another attempt is ever taken for this one."""
    found = recipe(grid={**GRID, "placement": ["2x4"]})
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


def test_attempt_has_the_images_id_on_its_own_nodes_only() -> None:
    """Where an engine calls it otherwise; of nodes that take no part, nothing is said."""
    program = replace(IN_IMAGE, ids={"n1": "sha256:11", "n9": "sha256:99"})
    found = replace(recipe(grid={**GRID, "placement": ["2x4"]}), program=program)
    attempt = bind.first(found, plan.build(found).trials[0], seats(found))
    assert (attempt.image, attempt.images) == (IN_IMAGE.digest, {"n1": "sha256:11"})


@pytest.mark.parametrize(
    ("went", "skew"), [((10.0, 10.25, 9.5), 0.75), ((10.0,), 0.0), ((10.0, None), None)]
)
def test_start_skew_is_known_only_if_every_gate_opened(
    went: tuple[float | None, ...], skew: float | None
) -> None:
    """From the first gate to the last; a task that never started leaves no number."""
    ends = tuple(TaskEnd(f"n{rank}", rank, 0, "exited", 0, "", at) for rank, at in enumerate(went))
    assert GangEnd(reason="done", ends=ends).start_skew_s == skew


def test_trials_are_selected_by_placement_or_name() -> None:
    """A glob over `2x8` or over `2n8g-r50_b128_fp32_1`; several add up; without one, all."""
    trials = plan.build(shipped("rn50-fp32", "v100x4", IN_IMAGE)).trials
    assert plan.select(trials, ()) == trials
    placements = {trial.case.placement for trial in plan.select(trials, ("?x8",))}
    assert placements == {"1x8", "2x8", "4x8"}
    both = {trial.case.placement for trial in plan.select(trials, ("1x1", "4x*"))}
    assert both == {"1x1", "4x8"}
    names = [trial.name for trial in plan.select(trials, ("4n8g-*_2",))]
    assert names == ["4n8g-r50_b128_fp32_2"]
    for unfit in ("9x*", ""):
        with pytest.raises(errors.UsageError, match=f"no case matches {re.escape(repr(unfit))}"):
            plan.select(trials, ("1x1", unfit))


def test_words_of_cases_are_split_at_commas_unless_they_are_a_name() -> None:
    """A case may be called `MP_[1,2]`: that is neither two patterns nor a set of characters."""
    trials = plan.build(shipped("rn50-fp32", "v100x4", IN_IMAGE)).trials
    named = (replace(trials[0], name_of_case="MP_[1,2]"), *trials[1:])
    assert plan.select(named, ("MP_[1,2]",)) == named[:1]
    chosen = plan.select(named, ("1x8, 2x8", "MP_[1,2]"))
    placements = {trial.case.placement for trial in chosen[1:]}
    assert (chosen[0], placements) == (named[0], {"1x8", "2x8"})
