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


def case(workload: Workload = RN50, where: Cluster | None = None, **said: object) -> Given:
    """Return a playbook of one case with these values."""
    return Given({"cases": [{**CASE, **said}]}, workload, where)


def cases(*said: Mapping[str, object], **more: object) -> Given:
    """Return a playbook of several cases, with these other keys."""
    return Given({"cases": [{**CASE, **own} for own in said or ({},)], **more})


def grid(axes: Mapping[str, object], where: Cluster | None = None, **more: object) -> Given:
    """Return a playbook of a grid with these axes, and with these other keys."""
    return Given({"grid": {**GRID, **axes}, **more}, RN50, where)


def method(**said: object) -> Given:
    """Return a playbook of one case that is measured so."""
    return cases(method={**METHOD, **said})


TOO_MANY = {"micro_batch_size": list(range(1, 2001)), "placement": ["1x1"]}
OURS = ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_DEBUG", "RANK", "DLPERF_TASK", "TZ")
NO_SECRETS = ("TOKENIZERS_PARALLELISM", "KEYBOARD", "COMPASS", "NCCL_ALGO")
BAD = {
    "ranks that cannot be split": case(
        GPT, placement="4x8", tensor_parallel=8, pipeline_parallel=3
    ),
    "wrong data_parallel": case(GPT, placement="1x8", tensor_parallel=2, data_parallel=8),
    "axes that the program lacks": case(
        replace(RN50, axes=frozenset()),
        None,
        **{"placement": "1x8", "accumulation_steps": 2},
        **{"tensor_parallel": 2, "pipeline_parallel": 2},
    ),
    "precision that the program lacks": case(NGC, precision="bf16"),
    "case that the workload cannot run": case(PICKY),
    "case with wrong parameters, which the workload is not asked about": case(
        PICKY, params={"image_size": "big"}
    ),
    "window beyond the last logged iteration": method(iterations=121, window=[20, 121]),
    "rule that the logs do not serve": method(window=None, rule="reported"),
    "wrong window and wrong case": cases(
        {"tensor_parallel": 2}, method={**METHOD, "window": [5, 50]}
    ),
    "canary of no case": method(canary={"case": "4x8"}),
    "canary of a case without a name": replace(
        method(iterations=100, window=[20, 60], canary={"case": "1x1"}), workload=ONEFLOW_GPT
    ),
    "device that the program lacks": replace(cases(device="cpu"), workload=NGC),
    "default device that the program lacks": replace(
        cases(device=None), workload=replace(RN50, devices=frozenset({"cpu"}))
    ),
    "no device on local nodes": replace(cases(device=None), where=LOCAL),
    "too many nodes in a grid": grid(
        {"placement": ["1x1", "3x1"], "micro_batch_size": [4, 8]}, FOUR_GPUS
    ),
    "too many GPUs": case(RN50, FOUR_GPUS, placement="2x5"),
    "too many nodes and GPUs": case(RN50, FOUR_GPUS, placement="3x5"),
    "more GPUs than may be used": case(RN50, THREE_OF_EIGHT, placement="1x4"),
    "too few nodes with enough GPUs": case(RN50, MIXED, placement="3x4"),
    "IPv6 for mpirun": case(replace(RN50, launcher=mpirun.launch), SIX, placement="2x1"),
    "IPv6 for a program without it": case(replace(RN50, ipv6=False), SIX, placement="2x1"),
    "data set that nodes lack": case(NGC, cluster(3, gpus={"count": 1}), placement="2x1"),
    "too many trials of a grid": grid(TOO_MANY, method={**METHOD, "repeats": 6}),
    "too many trials of cases": cases(
        *({"micro_batch_size": size} for size in range(1, 12)), method={**METHOD, "repeats": 1000}
    ),
    "wrong parameters of all cases": grid({}, params=WRONG_PARAMS),
    "wrong parameters of a case": case(params={**WRONG_PARAMS, "image_size": "64"}),
    "wrong parameters of a grid": grid(
        {"params": {name: [value] for name, value in WRONG_PARAMS.items()}}
    ),
    "wrong number where a word may stand": case(params={"loss_scale": 0}),
    "parameter that one case lacks": replace(
        cases({}, {"placement": "1x2", "params": {"layers": 2}}), workload=NEEDS_LAYERS
    ),
    "secret among the parameters": cases(params={"password": "hush-hush"}),
    "exclusions without a case": grid(
        {}, exclude=[{"placement": "1x2"}, {"placement": "4x8"}, {"params": {"threads": 9}}]
    ),
    "exclusion of every case": grid({}, exclude=[{"precision": "fp32"}]),
    "cases that are doubled": cases(*({"params": {"loss_scale": at}} for at in (128, 128.0, 64))),
    "many wrong cases": replace(
        cases(
            *({"placement": "3x1"}, {"placement": "1x8"}),
            *({"placement": "1x2", "tensor_parallel": 4}, {"params": {"thread": 1}}, {}, {}),
            exclude=[{"precision": "amp"}],
        ),
        where=FOUR_GPUS,
    ),
    "proxy with a password": cases(env={"HTTPS_PROXY": "http://me:hush-hush@proxy.example:3128"}),
    "variables that this program sets": cases(env=dict.fromkeys(OURS, 3)),
    "variable that the workload sets on CPUs": replace(
        cases(device="cpu", env=THREADS), where=WITH_THREADS
    ),
}
GOOD = {
    "as many nodes and GPUs as there are": case(RN50, FOUR_GPUS, placement="2x4"),
    "as many GPUs as may be used": case(RN50, THREE_OF_EIGHT, placement="1x3"),
    "enough nodes that fit": case(RN50, MIXED, placement="2x4"),
    "more ranks on CPUs than GPUs": replace(
        cases({"placement": "2x16"}, device="cpu"), where=cluster(2)
    ),
    "IPv6 for torchrun": case(RN50, SIX, placement="2x1"),
    "IPv6 on one node": case(replace(RN50, ipv6=False), SIX),
    "local nodes and CPUs": replace(cases(device="cpu"), where=LOCAL),
    "local nodes and GPUs": case(RN50, LOCAL),
    "no device on remote nodes": replace(cases(device=None), where=FOUR_GPUS),
    "no device for a program on GPUs": replace(cases(device=None), workload=NGC),
    "a data set that is there": case(
        NGC, cluster(3, gpus={"count": 1}, data={"imagenet": "/data/image"}), placement="2x1"
    ),
    "10,000 trials": grid(TOO_MANY, method={**METHOD, "repeats": 5}),
    "a parameter of all cases": replace(cases(params={"layers": 2}), workload=NEEDS_LAYERS),
    "threads of a program on GPUs": replace(cases(env=THREADS), where=WITH_THREADS),
    "names that only resemble secrets": cases(env=dict.fromkeys(NO_SECRETS, "false")),
    "addresses without a password": cases(
        env={"A": "http://proxy.example:3128", "B": "http://me@proxy.example", "C": "a:b@c"}
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
    params = {"image_size": list(range(100, 150))}
    axes = {"micro_batch_size": HUNDRED, "accumulation_steps": HUNDRED, "params": params}
    begin = time.perf_counter()
    (mistake,) = grid(axes, cluster(1)).mistakes()
    assert mistake == "['grid']: 1000000 trials; needed at most 10000"
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
