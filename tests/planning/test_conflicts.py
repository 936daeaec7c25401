"""Errors of playbooks: what is refused, at which key, and in which words."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.launchers import mpirun
from orchestrator.model.cluster import Cluster
from orchestrator.model.text import Noun
from orchestrator.planning import environment, matrix
from orchestrator.workloads import Workload, ngc_pytorch_rn50, oneflow_gpt
from tests.planning.recipes import CASE, METHOD, RN50, cluster, experiment

NGC, ONEFLOW_GPT = ngc_pytorch_rn50.WORKLOAD, oneflow_gpt.WORKLOAD
GRID = {"placement": ["1x1", "1x2"], "precision": ["fp32"], "micro_batch_size": [4]}
GPT = replace(RN50, axes=frozenset({"accumulation_steps", "tensor_parallel", "pipeline_parallel"}))
PICKY = replace(RN50, unsupported=lambda case, _: (f"{case.nodes} nodes; needed 9",))
FOUR_GPUS = cluster(2, gpus={"count": 4})
LOCAL = cluster(2, transport="local", runtime="process", gpus={"count": 4})
THREE_OF_EIGHT = cluster(1, gpus={"count": 8, "use": [1, 3, 5]})
THREADS = {"OMP_NUM_THREADS": "4"}
WITH_THREADS = cluster(1, gpus={"count": 2}).model_copy(update={"env": THREADS})
WRONG_PARAMS = {
    "loss_scale": "static",
    "image_size": 8,
    "memory_format": "nhwC",
    "threads": 1.0,
    "epochs": 1,
}
HUNDRED = list(range(1, 101))


def nodes(*said: Mapping[str, object]) -> Cluster:
    """Return a cluster of nodes with these settings."""
    entries = [{"name": f"n{n}", "address": f"10.0.0.{n}", **own} for n, own in enumerate(said, 1)]
    return Cluster.model_validate_json(json.dumps({"name": "testers", "nodes": entries}))


MIXED = nodes(*({"gpus": {"count": count}} for count in (2, 4, 2, 4)))
SIX = nodes(*({"address": f"fd00::{n}", "gpus": {"count": 1}} for n in (1, 2)))


class Required(Noun):
    """Parameters of which one must be given."""

    layers: int


NEEDS_LAYERS = replace(RN50, params=Required)


@dataclass(frozen=True)
class Given:
    """A playbook, as far as it differs from a good one, its workload and its inventory."""

    said: Mapping[str, object]
    workload: Workload = RN50
    where: Cluster | None = None

    def mistakes(self) -> list[str]:
        """Return each conflict as ``path: text``."""
        found = experiment(**{"device": "cuda", **self.said})
        return [
            f"{list(conflict.path)}: {conflict.text}"
            for conflict in matrix.conflicts(found, self.workload, self.where)
        ]


def one(**said: object) -> dict[str, object]:
    """Return a playbook of one case."""
    return {"cases": [{**CASE, **said}]}


def method(**said: object) -> dict[str, object]:
    return {**one(), "method": {**METHOD, **said}}


BAD = {
    "ranks that cannot be split": Given(
        one(placement="4x8", tensor_parallel=8, pipeline_parallel=3), GPT
    ),
    "wrong data_parallel": Given(one(placement="1x8", tensor_parallel=2, data_parallel=8), GPT),
    "axes that the program lacks": Given(
        one(placement="1x8", tensor_parallel=2, pipeline_parallel=2, accumulation_steps=2),
        replace(RN50, axes=frozenset()),
    ),
    "precision that the program lacks": Given(one(precision="bf16"), NGC),
    "case that the workload cannot run": Given(one(), PICKY),
    "case with wrong parameters, which the workload is not asked about": Given(
        one(params={"image_size": "big"}), PICKY
    ),
    "window beyond the last logged iteration": Given(method(iterations=121, window=[20, 121])),
    "rule that the logs do not serve": Given(method(window=None, rule="reported")),
    "wrong window and wrong case": Given(
        {**one(tensor_parallel=2), "method": {**METHOD, "window": [5, 50]}}
    ),
    "canary of no case": Given(method(canary={"case": "4x8"})),
    "canary of a case without a name": Given(
        {**method(iterations=100, window=[20, 60], canary={"case": "1x1"}), "workload": "gpt"},
        ONEFLOW_GPT,
    ),
    "device that the program lacks": Given({**one(), "device": "cpu"}, NGC),
    "default device that the program lacks": Given(
        {**one(), "device": None}, replace(RN50, devices=frozenset({"cpu"}))
    ),
    "no device on local nodes": Given({**one(), "device": None}, RN50, LOCAL),
    "too many nodes in a grid": Given(
        {"grid": {**GRID, "placement": ["1x1", "3x1"], "micro_batch_size": [4, 8]}},
        RN50,
        FOUR_GPUS,
    ),
    "too many GPUs": Given(one(placement="2x5"), RN50, FOUR_GPUS),
    "too many nodes and GPUs": Given(one(placement="3x5"), RN50, FOUR_GPUS),
    "more GPUs than may be used": Given(one(placement="1x4"), RN50, THREE_OF_EIGHT),
    "too few nodes with enough GPUs": Given(one(placement="3x4"), RN50, MIXED),
    "IPv6 for mpirun": Given(one(placement="2x1"), replace(RN50, launcher=mpirun.launch), SIX),
    "IPv6 for a program without it": Given(one(placement="2x1"), replace(RN50, ipv6=False), SIX),
    "data set that nodes lack": Given(one(placement="2x1"), NGC, cluster(3, gpus={"count": 1})),
    "too many trials of a grid": Given(
        {
            "grid": {**GRID, "micro_batch_size": list(range(1, 2001))},
            "method": {**METHOD, "repeats": 6},
        }
    ),
    "too many trials of cases": Given(
        {
            "cases": [{**CASE, "micro_batch_size": size} for size in range(1, 12)],
            "method": {**METHOD, "repeats": 1000},
        }
    ),
    "wrong parameters of all cases": Given({"grid": GRID, "params": WRONG_PARAMS}),
    "wrong parameters of a case": Given(one(params={**WRONG_PARAMS, "image_size": "64"})),
    "wrong parameters of a grid": Given(
        {"grid": {**GRID, "params": {name: [value] for name, value in WRONG_PARAMS.items()}}}
    ),
    "wrong number where a word may stand": Given(one(params={"loss_scale": 0})),
    "axis of parameters without a value": Given({"grid": {**GRID, "params": {"threads": []}}}),
    "parameter that one case lacks": Given(
        {"cases": [CASE, {**CASE, "placement": "1x2", "params": {"layers": 2}}]}, NEEDS_LAYERS
    ),
    "secret among the parameters": Given({**one(), "params": {"password": "hush-hush"}}),
    "exclusions without a case": Given(
        {
            "grid": GRID,
            "exclude": [{"placement": "1x2"}, {"placement": "4x8"}, {"params": {"threads": 9}}],
        }
    ),
    "exclusion of every case": Given({"grid": GRID, "exclude": [{"precision": "fp32"}]}),
    "values that are doubled in a grid": Given(
        {"grid": {**GRID, "placement": ["1x1", "1x2", "1x1"], "params": {"threads": [2, 2]}}}
    ),
    "cases that are doubled": Given(
        {"cases": [{**CASE, "params": {"loss_scale": scale}} for scale in (128, 128.0, 64)]}
    ),
    "many wrong cases": Given(
        {
            "cases": [
                {**CASE, "placement": "3x1"},
                {**CASE, "placement": "1x8"},
                {**CASE, "placement": "1x2", "tensor_parallel": 4},
                {**CASE, "params": {"thread": 1}},
                CASE,
                CASE,
            ],
            "exclude": [{"precision": "amp"}],
        },
        RN50,
        FOUR_GPUS,
    ),
    "proxy with a password": Given(
        {**one(), "env": {"HTTPS_PROXY": "http://me:hush-hush@proxy.example:3128"}}
    ),
    "variables that this program sets": Given(
        {
            **one(),
            "env": dict.fromkeys(
                ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_DEBUG", "RANK", "DLPERF_TASK", "TZ"), 3
            ),
        }
    ),
    "variable that the workload sets on CPUs": Given(
        {**one(), "device": "cpu", "env": THREADS}, RN50, WITH_THREADS
    ),
}
GOOD = {
    "as many nodes and GPUs as there are": Given(one(placement="2x4"), RN50, FOUR_GPUS),
    "as many GPUs as may be used": Given(one(placement="1x3"), RN50, THREE_OF_EIGHT),
    "enough nodes that fit": Given(one(placement="2x4"), RN50, MIXED),
    "more ranks on CPUs than GPUs": Given(
        {**one(placement="2x16"), "device": "cpu"}, RN50, cluster(2)
    ),
    "IPv6 for torchrun": Given(one(placement="2x1"), RN50, SIX),
    "IPv6 on one node": Given(one(), replace(RN50, ipv6=False), SIX),
    "local nodes and CPUs": Given({**one(), "device": "cpu"}, RN50, LOCAL),
    "local nodes and GPUs": Given(one(), RN50, LOCAL),
    "no device on remote nodes": Given({**one(), "device": None}, RN50, FOUR_GPUS),
    "no device for a program on GPUs": Given({**one(), "device": None}, NGC),
    "a data set that is there": Given(
        one(placement="2x1"), NGC, cluster(3, gpus={"count": 1}, data={"imagenet": "/data/image"})
    ),
    "10,000 trials": Given(
        {
            "grid": {**GRID, "placement": ["1x1"], "micro_batch_size": list(range(1, 2001))},
            "method": {**METHOD, "repeats": 5},
        }
    ),
    "a parameter of all cases": Given({**one(), "params": {"layers": 2}}, NEEDS_LAYERS),
    "threads of a program on GPUs": Given({**one(), "env": THREADS}, RN50, WITH_THREADS),
    "names that only resemble secrets": Given(
        {
            **one(),
            "env": dict.fromkeys(
                ("TOKENIZERS_PARALLELISM", "KEYBOARD", "COMPASS", "NCCL_ALGO"), "false"
            ),
        }
    ),
    "addresses without a password": Given(
        {
            **one(),
            "env": {"A": "http://proxy.example:3128", "B": "http://me@proxy.example", "C": "a:b@c"},
        }
    ),
}


def test_every_error_has_its_key_and_says_what_was_needed(snapshot: SnapshotAssertion) -> None:
    found = {name: given.mistakes() for name, given in BAD.items()}
    assert found == snapshot
    assert all(found.values())
    assert "hush" not in str(found)


@pytest.mark.parametrize("given", GOOD.values(), ids=GOOD)
def test_a_playbook_that_holds_together_has_no_conflict(given: Given) -> None:
    assert given.mistakes() == []


def test_a_grid_of_a_million_cases_is_refused_without_expanding_it() -> None:
    """A mistyped list of numbers costs a moment, not the machine's memory."""
    grid = {**GRID, "micro_batch_size": HUNDRED, "accumulation_steps": HUNDRED}
    params = {"image_size": list(range(100, 150))}
    begin = time.perf_counter()
    assert Given({"grid": {**grid, "params": params}}, RN50, cluster(1)).mistakes() == [
        "['grid']: 1000000 trials; needed at most 10000"
    ]
    assert time.perf_counter() - begin < 1.0


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "hf_token", "GITHUBTOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"),
        *("DB_PASSWORD", "PASS", "SSH_KEY", "MY_CREDENTIALS", "HTTP_AUTHORIZATION", "KEY"),
        *("NGC_AUTHKEY", "PASSWORDFILE", "SESSION_COOKIE"),
    ],
)
def test_a_variable_named_like_a_secret_is_refused_without_its_value(name: str) -> None:
    """Plans and reports show the environment; an inventory's variables are checked too."""
    (conflict,) = environment.refused({name: "hush-hush"})
    assert conflict.path == ("env", name)
    assert conflict.text.startswith(f"{name} is named like a secret")
    assert "hush" not in conflict.text
