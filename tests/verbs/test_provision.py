"""provision: what it sees on this machine, what it finds, and what it says where it cannot ask."""

import os

import pytest

from tests import SAMPLES
from tests.cli.here import Here
from tests.sshd import free_port, keygen

TWO = "inventory/two.yaml"
NO_DRIVER = (
    "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9"
)
T4 = f"cat {SAMPLES / 'nvidia-smi/telegraf_tesla-t4.xml'}"


def test_facts_of_each_node_are_in_the_site_file(here: Here) -> None:
    ended = here("provision", "two", "--json", code=0)
    site = ended.document["site"]
    assert site["nodes"]["left"]["host"]["kernel"].endswith(os.uname().release)
    assert site["nodes"]["right"]["gpu"] is None
    kept = here.state / "sites" / "two.json"
    plain = here("provision", "two", "--nodes", "left", code=0)
    assert "cluster two: 1 node, left" in plain.err
    assert "Fit to measure: 1 node." in plain.out
    assert f"Facts and findings: {kept.relative_to(here.folder)}" in plain.out


def test_an_interface_that_the_node_lacks_is_an_error(here: Here) -> None:
    """A sweep there starts nothing, and says which node lacks it (exit 5)."""
    here.edit(TWO, "process}", "process, interface: ib77}")
    assert "INTERFACE-MISSING" in here("provision", "two", code=5).out
    (error,) = here("sweep", "toy", "--json", code=5).document["errors"]
    assert (error["code"], error["fix"]) == (
        "INTERFACE-MISSING",
        "name an interface that the node has",
    )
    where = {"node": "left", "phase": "preflight"}
    assert error["where"] == where == {key: error[key] for key in where}
    assert not [*here.state.glob("sweeps/*")]


@pytest.mark.parametrize(
    ("gpus", "nvidia_smi", "codes"),
    [
        ("{count: 1}", NO_DRIVER, {"GPU-NO-DRIVER"}),
        (
            "{count: 2, model: Tesla V100-SXM2-16GB}",
            T4,
            {"GPU-COUNT", "GPU-MODEL", "GPU-BUSY", "GPU-PERSISTENCE"},
        ),
    ],
    ids=("no driver", "another GPU"),
)
def test_declared_gpus_are_asked_for(
    here: Here, gpus: str, nvidia_smi: str, codes: set[str]
) -> None:
    """A stub replays recorded outputs: a T4 that is busy, and a machine without a driver."""
    here.edit(TWO, "process}", f"process, gpus: {gpus}}}")
    here.write("bin/nvidia-smi", f"#!/bin/sh\n{nvidia_smi}\n").chmod(0o755)
    here.patch.setenv("PATH", f"{here.folder / 'bin'}:{os.environ['PATH']}")
    ended = here("provision", "two", "--json", code=5)
    assert codes <= {finding["code"] for finding in ended.document["site"]["findings"]}
    assert ("communicate with the NVIDIA driver" in ended.out) == (nvidia_smi == NO_DRIVER)


def test_nodes_that_cannot_be_asked_are_not_called_unfit(here: Here) -> None:
    """Nobody knows; each node's reason is on standard error and in the document."""
    keygen(here.folder / "id")
    here.write(
        "away.yaml",
        f"name: away\ndefaults: {{port: {free_port()}, identity: {here.folder / 'id'}}}\n"
        "nodes: [{name: node1, address: 127.0.0.1}]\n",
    )
    ended = here("provision", "away.yaml", code=4)
    assert "ERROR SSH-REFUSED node=node1 address=127.0.0.1: port " in ended.err
    assert "Not known whether fit: not every node could be asked." in ended.err
    assert "No findings" not in ended.out
    here.edit(TWO, "transport: local", "transport: ssh, user: nobody")
    ended = here("provision", "two", "--json", code=6)
    assert (ended.codes, ended.document["exit_code"]) == (["SSH-KEY", "SSH-KEY"], 6)
    places = [error["where"] for error in ended.document["errors"]]
    assert places == [{"node": "left"}, {"node": "right"}]


def test_warnings_that_were_there_before_are_one_line(here: Here) -> None:
    """The table is for new findings: at the tenth sweep nobody reads it."""
    here.write("imagenet/train/n01440764/a.JPEG", "x")
    data = f"process, data: {{imagenet: {here.folder / 'imagenet'}}}}}"
    here.edit(TWO, "process}", data)
    assert "DATA-INCOMPLETE" in here("provision", "two", code=0).out
    second = here("sweep", "toy", "--case", "1x1", "--repeats", "1", code=0)
    assert "warnings as before: " in second.err
    assert "DATA-INCOMPLETE left,right" in second.err
    assert "DATA-INCOMPLETE" not in second.out


def test_nothing_to_show_is_a_line_and_no_table(here: Here) -> None:
    assert here("list", "sweeps", code=0).out == "no sweeps\n"
    assert here("trust", "local", code=0).out == "no node of local is reached by SSH\n"
    cleaned = (here("clean", "--inventory", "two").out for _ in range(9))
    nothing = "nothing of the sweeps in .dlperf is left on 2 nodes"
    last = next(text for text in cleaned if nothing in text)  # earlier ones removed leftovers
    assert "kind" not in last
