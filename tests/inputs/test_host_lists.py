"""Hosts from other tools' lists."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.inputs import host_lists
from orchestrator.inputs.host_lists import Listed

SAMPLES = Path(__file__).parents[1] / "samples" / "hosts"
KEY = "~/.ssh/cluster"
# What `ansible-inventory --list` gives for both files: nearer groups and hosts count more.
ANSIBLE = {
    "login": ("129.0.0.1", "opc", None, None),
    "gpu-01": ("gpu-01", "opc", None, KEY),
    "gpu-02": ("gpu-02", "opc", None, KEY),
    "gpu-03": ("192.168.168.13", "nobody", 2222, KEY),
}


@pytest.mark.parametrize("name", ["ansible.ini", "ansible.yaml"])
def test_ansible_inventories_name_hosts_and_how_they_are_reached(name: str) -> None:
    """Ranges, groups in groups, their variables; what is encrypted is not asked for."""
    found = host_lists.ansible(SAMPLES / name)
    said = {one.name: (one.address, one.user, one.port, one.identity) for one in found}
    assert said == ANSIBLE


def test_hostfile_of_openmpi_names_each_host_once() -> None:
    """Slots are what it claims of GPUs; names are first labels."""
    assert host_lists.hostfile(SAMPLES / "hostfile") == (
        Listed("foo", "foo.example.com"),
        Listed("bar", "bar.example.com", gpus=2),
        Listed("yow", "yow.example.com", gpus=4),
    )


def test_nodes_of_slurm_come_with_their_gpus() -> None:
    """With a model in the Gres or without; also on one line each, with a Reason in free words."""
    found = host_lists.scontrol((SAMPLES / "scontrol.txt").read_text(), "it")
    assert [(one.name, one.address, one.gpus) for one in found] == [
        ("gpu010", "gpu010", 4),
        ("gpu01", "gpu01", 8),
        ("gpu02", "gpu02", 4),
    ]
    line = "NodeName=a1 Gres=gpu:h100:8 NodeAddr=10.1.1.11 State=DOWN Reason=was NodeAddr=9.9.9.9"
    assert host_lists.scontrol(line, "it") == (Listed("a1", "10.1.1.11", gpus=8),)


def test_words_of_the_command_line_are_hosts() -> None:
    """A user before the address; an IP address is its own name."""
    assert host_lists.host("me@gpu01.lab") == Listed("gpu01", "gpu01.lab", "me")
    assert host_lists.host("10.0.0.11").name == "10.0.0.11"
    assert host_lists.host("g") == Listed("node-g", "g")
    for word in ("@x", "-oProxyCommand=x", "a b", ""):
        with pytest.raises(errors.UsageError) as refused:
            host_lists.host(word)
        assert refused.value.code == "HOST"


def test_lists_without_a_host_are_refused(tmp_path: Path) -> None:
    """Also files that are not there, and YAML that is none."""
    (tmp_path / "empty").write_text("# nobody\n")
    (tmp_path / "bad.yaml").write_text("a: [\n")
    (tmp_path / "list.yaml").write_text("- a\n")
    for name in ("empty", "bad.yaml", "list.yaml"):
        with pytest.raises(errors.UsageError):
            host_lists.ansible(tmp_path / name)
    for name in ("empty", "gone"):
        with pytest.raises(errors.UsageError):
            host_lists.hostfile(tmp_path / name)
    with pytest.raises(errors.UsageError):
        host_lists.scontrol("slurm_load_node error", "it")
