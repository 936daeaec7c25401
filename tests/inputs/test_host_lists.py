"""Hosts from other tools' lists."""

from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.inputs import ansible_hosts, host_lists
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
    found = ansible_hosts.hosts(SAMPLES / name)
    said = {one.name: (one.address, one.user, one.port, one.identity) for one in found}
    assert said == ANSIBLE


def test_hostfile_of_openmpi_names_hosts() -> None:
    """In its order; slots are what it claims of GPUs."""
    assert host_lists.hostfile(SAMPLES / "hostfile") == (
        Listed("foo.example.com", "foo.example.com"),
        Listed("bar.example.com", "bar.example.com", gpus=2),
        Listed("yow.example.com", "yow.example.com", gpus=4),
        Listed("foo.example.com", "foo.example.com", gpus=8),
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
    """A user before the address, a port after it; an IP address is its own name."""
    assert host_lists.host("me@gpu01.lab:2222") == Listed("gpu01.lab", "gpu01.lab", "me", 2222)
    assert host_lists.host("10.0.0.11").name == "10.0.0.11"
    assert host_lists.host("fe80::1") == Listed("fe80--1", "fe80::1")
    assert host_lists.host("g") == Listed("node-g", "g")
    for word in ("@x", "-oProxyCommand=x", "a b", ""):
        with pytest.raises(errors.UsageError) as refused:
            host_lists.host(word)
        assert refused.value.code == "HOST"


def test_hosts_are_called_by_their_first_labels_where_these_differ() -> None:
    """No host is lost for its name; one that is listed twice counts where it stands first."""
    words = (
        "me@gpu02.lab",
        "gpu01.east.lab",
        "gpu01.west.lab",
        "10.0.0.1",
        "10.0.0.2",
        "gpu02.lab",
    )
    found = host_lists.distinct(map(host_lists.host, words))
    assert [one.name for one in found] == [
        *("gpu02", "gpu01.east.lab", "gpu01.west.lab", "10.0.0.1", "10.0.0.2")
    ]
    assert found[0].user == "me"


def test_ansible_is_read_whatever_form_and_ending_the_file_has(tmp_path: Path) -> None:
    """YAML without an ending, what `ansible-inventory --list` prints, strides, jump hosts."""
    path = tmp_path / "hosts"
    path.write_text("# of all\nall: # here\n  hosts:\n    gpu01: {ansible_host: 10.0.0.1}\n")
    assert ansible_hosts.hosts(path) == (Listed("gpu01", "10.0.0.1"),)
    path.write_text(
        '{"_meta": {"hostvars": {"gpu01": {"ansible_user": "me"}}},'
        ' "all": {"children": ["gpu"]}, "gpu": {"hosts": ["gpu01", "gpu02"]}}'
    )
    assert ansible_hosts.hosts(path) == (Listed("gpu01", "gpu01", "me"), Listed("gpu02", "gpu02"))
    path.write_text(
        "[gpu] ; all of them\ngpu[1:5:2] ansible_ssh_common_args='-o ProxyJump=me@login:22 -4'\n"
        "n[a:b] ansible_ssh_extra_args='-C -J gate'\n"
    )
    found = {one.name: one.jump for one in ansible_hosts.hosts(path)}
    assert found == {
        **dict.fromkeys(("gpu1", "gpu3", "gpu5"), "me@login:22"),
        "na": "gate",
        "nb": "gate",
    }


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("gpu01 note=\"it's", "line 2: No closing quotation"),
        ("gpu[0:3000000]", "3000001 hosts; needed at most 10000"),
        ("gpu01 ansible_user='{{ who }}'", "gpu01: {{ who }} is a template"),
    ],
)
def test_what_only_ansible_understands_is_told_with_its_line(
    tmp_path: Path, line: str, seen: str
) -> None:
    """And how Ansible itself says it plainly; nothing hangs."""
    path = tmp_path / "hosts.ini"
    path.write_text(f"[gpu]\n{line}\n")
    with pytest.raises(errors.UsageError) as refused:
        ansible_hosts.hosts(path)
    assert seen in refused.value.cause
    assert "ansible-inventory" in refused.value.fix


def test_a_line_of_a_hostfile_that_names_no_host_is_told(tmp_path: Path) -> None:
    """By file and line."""
    path = tmp_path / "hostfile"
    path.write_text("gpu01:8\n\ngpu02,gpu03\n")
    with pytest.raises(errors.UsageError, match="hostfile:3: gpu02,gpu03"):
        host_lists.hostfile(path)


def test_broken_yaml_is_told_by_its_place(tmp_path: Path) -> None:
    """As in files of ours: the list is there, and a line of it is wrong."""
    path = tmp_path / "bad.yaml"
    path.write_text("all:\n  hosts: {gpu01: {}, gpu02\n")
    with pytest.raises(
        errors.UsageError, match=r"bad\.yaml:3:1: expected .*; needed YAML"
    ) as raised:
        ansible_hosts.hosts(path)
    assert raised.value.code == "HOST"


def test_lists_without_a_host_are_refused(tmp_path: Path) -> None:
    """Also files that are not there, and YAML that is none."""
    (tmp_path / "empty").write_text("# nobody\n")
    (tmp_path / "bad.yaml").write_text("a: [\n")
    (tmp_path / "list.yaml").write_text("- a\n")
    for name in ("empty", "bad.yaml", "list.yaml"):
        with pytest.raises(errors.UsageError):
            ansible_hosts.hosts(tmp_path / name)
    for name in ("empty", "gone"):
        with pytest.raises(errors.UsageError):
            host_lists.hostfile(tmp_path / name)
    with pytest.raises(errors.UsageError):
        host_lists.scontrol("slurm_load_node error", "it")
