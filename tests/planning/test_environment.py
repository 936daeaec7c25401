"""Variables of the user in the environment of tasks: what is added, and what is refused."""

import pytest

from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.planning import bind, environment
from tests.planning.playbooks import GRID, cluster, experiment, mistakes
from tests.planning.recipes import GRID as ON_GPUS
from tests.planning.recipes import first, recipe


def test_variables_of_playbook_and_inventory_reach_every_task() -> None:
    """The playbook's count more; what the workload sets stays; numbers become text."""
    grid = {**ON_GPUS, "placement": ["2x4"]}
    ours = recipe(grid=grid, env={"NCCL_ALGO": "Ring", "NCCL_MIN_NCHANNELS": 4})
    said = ours.cluster.model_copy(update={"env": {"NCCL_ALGO": "Tree", "UCX_TLS": "rc"}})
    found = first(type(ours)(ours.name, ours.experiment, ours.workload, said, ours.program))
    for task in found.tasks:
        added = {"NCCL_ALGO": "Ring", "NCCL_MIN_NCHANNELS": "4", "UCX_TLS": "rc"}
        assert added.items() <= task.env.items()
        assert task.env["NCCL_DEBUG"] == "INFO"


def test_another_variable_is_another_sweep() -> None:
    """Numbers of one environment are not resumed in another."""
    plain, other = recipe(grid=ON_GPUS), recipe(grid=ON_GPUS, env={"NCCL_ALGO": "Ring"})
    assert bind.identity(plain) != bind.identity(other)


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "hf_token", "GITHUBTOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"),
        *("DB_PASSWORD", "PASS", "SSH_KEY", "MY_CREDENTIALS", "HTTP_AUTHORIZATION", "KEY"),
        *("NGC_AUTHKEY", "PASSWORDFILE", "SESSION_COOKIE"),
    ],
)
def test_what_is_named_like_a_secret_is_refused(name: str) -> None:
    """Plans and reports show the environment; the message names the variable, not its value."""
    ((path, text),) = mistakes(experiment(grid=GRID, env={name: "hush-hush"}))
    assert path == ("env", name)
    assert text.startswith(f"{name} is named like a secret")
    assert "hush" not in text


def test_an_address_with_a_password_is_refused() -> None:
    """As of a proxy; one without, or with a user alone, is taken."""
    hush = {"HTTPS_PROXY": "http://me:hush-hush@proxy.example:3128"}
    ((path, text),) = mistakes(experiment(grid=GRID, env=hush))
    assert path == ("env", "HTTPS_PROXY")
    assert text.startswith("HTTPS_PROXY holds an address with a password")
    assert "hush" not in text
    for value in ("http://proxy.example:3128", "http://me@proxy.example:3128", "a:b@c"):
        assert mistakes(experiment(grid=GRID, env={"HTTPS_PROXY": value})) == []


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "KEYBOARD", "COMPASS", "NCCL_ALGO"])
def test_what_only_sounds_like_a_secret_is_taken(name: str) -> None:
    """Whole words between underscores count."""
    assert mistakes(experiment(grid=GRID, env={name: "false"})) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NCCL_IB_HCA", "`hcas:` in the inventory"),
        ("NCCL_IB_GID_INDEX", "`roce: {gid_index: ...}` in the inventory"),
        ("NCCL_DEBUG", "set by this program"),
        ("RANK", "set by this program"),
        ("DLPERF_TASK", "set by this program"),
        ("TZ", "TZ is set by this program: tasks run in UTC, so that their logs have the clock"),
    ],
)
def test_what_this_program_sets_is_refused(name: str, words: str) -> None:
    """Wherever it stands, with the place where it is said."""
    ((_, text),) = mistakes(experiment(grid=GRID, env={name: "3"}))
    assert words in text
    (conflict,) = environment.refused(cluster(1).model_copy(update={"env": {name: 3}}).env)
    assert words in conflict.text


def test_what_the_workload_sets_for_a_case_is_refused() -> None:
    """Threads of ranks on CPUs are the case's; on GPUs nobody else sets them."""
    threads = {"OMP_NUM_THREADS": "4"}
    text = "OMP_NUM_THREADS is set by workload reference_rn50; needed another variable"
    on_cpu = experiment(grid=GRID, device="cpu", env=threads)
    assert mistakes(on_cpu) == [(("env", "OMP_NUM_THREADS"), text)]
    assert mistakes(experiment(grid=GRID, env=threads)) == []
    where = cluster(1, gpus={"count": 2}).model_copy(update={"env": threads})
    plain = experiment(grid=GRID, device="cpu")
    assert mistakes(plain, where) == [
        ((), f"inventory testers: env.{text}".replace("env.OMP", "env.OMP_NUM_THREADS: OMP", 1))
    ]
    assert mistakes(experiment(grid=GRID), where) == []


def test_inventory_without_the_new_fields_keeps_its_digest() -> None:
    """What was found fit before stays so; a variable or RoCE makes it another inventory."""
    plain = cluster(2, gpus={"count": 8})
    text = plain.model_dump(mode="json")
    assert sites.digest(Cluster.model_validate_json(plain.model_dump_json())) == sites.digest(plain)
    for changed in (
        plain.model_copy(update={"env": {"NCCL_ALGO": "Ring"}}),
        cluster(2, gpus={"count": 8}, roce={"gid_index": 3}),
        cluster(2, gpus={"count": 8}, agent=True),
    ):
        assert sites.digest(changed) != sites.digest(plain)
    assert text["env"] == {}
