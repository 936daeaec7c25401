"""What a user names on the command line: cases, sweeps and inventories, and what is meant by it."""

import json

import pytest

from tests.conftest import Place
from tests.waiting import wait_for


def planned(place: Place, *words: str) -> list[str]:
    """Placements that a dry run plans, each once."""
    trials = place.json("sweep", "toy", "--repeats", "1", "--dry-run", *words)["plan"]["trials"]
    return [f"{trial['case']['nodes']}x{trial['case']['gpus_per_node']}" for trial in trials]


@pytest.mark.parametrize(
    "words", [("--case", "1x1", "--case", "2x2"), ("--case", "1x1,2x2"), ("--case", "2x2, 1x*")]
)
def test_several_cases_are_several_cases(place: Place, words: tuple[str, ...]) -> None:
    """`--case` may be repeated and take commas, as `--nodes` does; the playbook's order stays."""
    assert planned(place, *words) == ["1x1", "2x2"]


def test_cases_that_are_not_there_are_named(place: Place) -> None:
    """One word that fits nothing is refused, though another fits."""
    done = place.must("sweep", "toy", "--dry-run", "--case", "1x1,9x9", "--case", "3x*", code=2)
    assert "ERROR NO-CASE: no case matches '9x9', '3x*'; there are 1x1, 2x2." in done.stderr
    assert "no case matches ''" in place.run("sweep", "toy", "--dry-run", "--case", "").stderr


def test_a_case_of_gpt_goes_by_its_own_name(place: Place) -> None:
    """The names of DLPerf's report, alone and in a list."""
    done = place.must(
        *("sweep", "oneflow-gpt", "--inventory", "v100x4", "--dry-run", "--json"),
        *("--case", "2D_PP_2x4x4_512_2304x24,DP_1x1x1_2_1536x16"),
    )
    names = [trial["name_of_case"] for trial in json.loads(done.stdout)["plan"]["trials"]]
    assert names == ["DP_1x1x1_2_1536x16", "2D_PP_2x4x4_512_2304x24"]


@pytest.mark.parametrize("words", [(), ("sweep",), ("inspect", "log"), ("data", "check")])
def test_dash_h_is_help(place: Place, words: tuple[str, ...]) -> None:
    """On every level, and the same as `--help`."""
    short = place.must(*words, "-h")
    assert short.stdout == place.run(*words, "--help").stdout
    assert "Usage: " in short.stdout


def unreachable(place: Place) -> None:
    """An inventory of a node that cannot be asked, provisioned all the same."""
    text = "name: nohost\nnodes: [{name: far, address: 127.0.0.9}]\n"
    (place.folder / "inventory" / "nohost.yaml").write_text(text)
    place.must("provision", "nohost", code=6)


def test_a_cluster_that_cannot_be_reached_is_nobodys_default(place: Place) -> None:
    """Where no other is named there is none; the last one found fit counts before and after."""
    place.rewrite(inventory="")
    unreachable(place)
    refused = place.run("sweep", "toy", "--dry-run")
    assert (refused.returncode, "ERROR NO-INVENTORY" in refused.stderr) == (2, True)
    assert "inventory/nohost.yaml. Fix: " in refused.stderr
    place.must("provision", "two")
    unreachable(place)
    done = place.must("sweep", "toy", "--dry-run")
    fit, unfit = done.stderr.splitlines()[:2]
    assert fit.endswith("inventory/two.yaml: the last one found fit in .dlperf")
    assert unfit.startswith("not fit, though provisioned later: ")
    assert unfit.endswith("inventory/nohost.yaml")
    assert "on left" in done.stdout


def test_the_playbooks_own_inventory_comes_before_the_last_one(place: Place) -> None:
    """And `--inventory` before both; a line says which one it is where none is named."""
    other = (place.folder / "inventory" / "two.yaml").read_text().replace("left", "port")
    (place.folder / "inventory" / "other.yaml").write_text(other.replace("two", "other"))
    place.must("provision", "other")
    done = place.run("sweep", "toy", "--dry-run")
    assert "inventory two: the playbook names it" in done.stderr
    assert "on left" in done.stdout
    named = place.run("sweep", "toy", "--dry-run", "--inventory", "other")
    assert "on port:" in named.stdout
    assert "inventory" not in named.stderr


MIXED = """\
name: mixed
nodes:
  - {name: small, address: 10.0.0.1, gpus: {count: 2}}
  - {name: large, address: 10.0.0.2, gpus: {count: 8}}
"""
EIGHT = """\
workload: reference_rn50
image: reference-rn50
method: {repeats: 1, iterations: 31, window: [5, 25]}
cases: [{placement: 1x8, precision: fp32, micro_batch_size: 4}]
"""


def test_nodes_that_do_not_fit_are_passed_over_and_cannot_be_all_there_are(place: Place) -> None:
    """A case takes the nodes that have its GPUs; where those are left out it is refused at once."""
    (place.folder / "inventory" / "mixed.yaml").write_text(MIXED)
    (place.folder / "playbooks" / "eight.yaml").write_text(EIGHT)
    on = ("sweep", "eight", "--dry-run", "--inventory", "mixed")
    shown = place.must(*on)
    assert "on large:" in shown.stdout
    refused = place.must(*on, "--nodes", "small", code=2)
    assert "1x8 asks for 8 GPUs; inventory mixed lets small use at most 2" in refused.stderr


@pytest.mark.cluster
def test_a_sweep_goes_by_what_a_user_has_at_hand(place: Place) -> None:
    """Its playbook's name, a file or folder, an id or the beginning of one that is no other's."""
    quick = ("sweep", "toy", "--case", "1x1", "--repeats", "1")
    place.must(*quick)
    (old,) = place.state.glob("sweeps/toy-*")
    place.must(*quick, "--new")
    (new,) = set(place.state.glob("sweeps/toy-*")) - {old}

    def meant(name: str) -> str:
        return str(place.json("status", name)["sweep"])

    assert [meant(name) for name in ("toy", "playbooks/toy.yaml", new.name)] == [new.name] * 3
    assert [meant(name) for name in (old.name, old.name[:-1], str(old))] == [old.name] * 3
    refused = place.run("stop", "toy-2")
    assert (refused.returncode, "ERROR SWEEP-AMBIGUOUS" in refused.stderr) == (2, True)
    assert old.name in refused.stderr
    assert new.name in refused.stderr
    assert "no sweep 'to-'" in place.run("logs", "--sweep", "to-").stderr
    assert json.loads(place.run("collect", "toy", "--json").stdout)["sweep"] == new.name
    assert json.loads(place.run("stop", "toy", "--json").stdout)["sweep"] == new.name
    place.must("logs", "--sweep", f"{old}/")


@pytest.mark.cluster
def test_status_says_how_far_a_trial_is_and_what_there_is_so_far(place: Place) -> None:
    """Iteration, rate and time left of what runs; the median of every case that has one."""
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    first = json.loads(place.run("status", "--json").stdout)
    (median,) = first["medians"]
    (result,) = [
        case
        for case in json.loads((place.sweep() / "results.json").read_text())["cases"]
        if case["median"]
    ]
    assert median["median"] == result["median"]
    assert (median["case"]["nodes"], median["trials_valid"], first["running"]) == (1, 1, [])
    table = place.run("status").stdout.partition("Medians so far")[2]
    assert "images/s" in table
    assert table.startswith(" (FP32, batch size 4, ")  # of all its cases, and no column then
    assert f"{median['median']:.2f}" in table
    place.rewrite(params="params: {step_s: 0.5}")
    place.start("sweep", "toy", "--case", "1x1")

    seen: list[dict[str, object]] = []

    def runs() -> bool:
        done = place.run("status", "--json")
        seen[:] = json.loads(done.stdout)["running"] if done.returncode == 0 else []
        return bool(seen)

    wait_for(runs, "an iteration is seen", 60)
    (going,) = seen
    assert str(going["trial"]).startswith("1n1g-toy_b4_fp32_")
    iteration, rate = int(str(going["iteration"])), float(str(going["rate"]))
    assert (going["iterations"], rate > 0) == (10, True)
    assert 0 < iteration <= 10
    assert going["left_s"] == pytest.approx((10 - iteration) * 4 / rate)
    place.must("stop")
