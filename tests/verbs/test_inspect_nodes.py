"""`inspect` of what nodes answer: GPUs, topologies, adapters."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import SAMPLES, warm
from tests.verbs.inspecting import inspect

KEYS = {
    "topology": {
        *("gpus", "hcas", "links", "cpu_affinity", "numa_affinity", "problems", "digest"),
    },
    "ibstat": {"hcas", "problems"},
    "gpu": {"driver", "cuda", "gpus", "problems"},
}
TEXTS = [
    (kind, path)
    for kind, folder in (("topology", "topo"), ("ibstat", "ibstat"), ("gpu", "nvidia-smi"))
    for path in sorted((SAMPLES / folder).iterdir())
]
# Seen in the files themselves; what is named in neither place is read without a word.
WITH_PROBLEMS = {
    "a800_8gpu_2nic_glued_affinity.txt": ["UNREADABLE"] * 4,
    "superbench_ndv4_a100_9nics.txt": ["UNREADABLE"],
    "telegraf_a100-sxm4-v12.xml": ["ATTACHED-GPUS"],
}
OF_ANOTHER_KIND = ("SOURCES.md", "netdata_tesla-p100.csv", "sysuest_v100_4gpu_plain.txt")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, warm.Ended]:
    """What `inspect` says of each recorded output, each in a process of its own."""
    lines = [("inspect", kind, str(path)) for kind, path in TEXTS]
    ended = warm.commands(lines, tmp_path_factory.mktemp("inspect"))
    return dict(zip((path for _, path in TEXTS), ended, strict=True))


@pytest.mark.parametrize(("kind", "path"), TEXTS, ids=[path.name for _, path in TEXTS])
def test_a_recorded_output_is_read_or_refused(
    answers: Mapping[Path, warm.Ended], kind: str, path: Path
) -> None:
    """Exit 0, 3 with the problems named, or 2 for what is another kind of text."""
    code, out, err = answers[path]
    document = json.loads(out)
    if path.name in OF_ANOTHER_KIND:
        assert (code, document["exit_code"]) == (2, 2)
        assert path.name in document["errors"][0]["message"]
        return
    problems = WITH_PROBLEMS.get(path.name, [])
    assert document.keys() == KEYS[kind]
    assert [problem["code"] for problem in document["problems"]] == problems
    assert (code, err) == (3 if problems else 0, "")


def test_ibstat_comes_out_as_printed() -> None:
    """The adapter of the published cluster's second node, with all its keys."""
    path = SAMPLES / "ibstat" / "dlperf_seed_vs002_mt4115.txt"
    (hca,) = json.loads(inspect("ibstat", "-", stdin=path.read_bytes()).stdout)["hcas"]
    (port,) = hca.pop("ports")
    assert hca == {
        "name": "mlx5_0",
        "type": "MT4115",
        "firmware": "12.27.1016",
        "node_guid": "0x506b4b0300f37674",
    }
    assert port == {
        "port": 1,
        "state": "Active",
        "physical_state": "LinkUp",
        "rate_gbps": 100,
        "base_lid": 56,
        "sm_lid": 27,
        "link_layer": "InfiniBand",
    }
