"""Hosts from other tools' lists."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.inputs import host_lists
from orchestrator.inputs.host_lists import HostList
from orchestrator.planning.inventory_draft import DraftNode
from tests import commands

SAMPLES = Path(__file__).parents[1] / "samples" / "hosts"
KEY = "~/.ssh/cluster"
ANSIBLE = {
    "login": ("129.0.0.1", "opc", None, None),
    "gpu-01": ("gpu-01", "opc", None, KEY),
    "gpu-02": ("gpu-02", "opc", None, KEY),
    "gpu-03": ("192.168.168.13", "nobody", 2222, KEY),
}


def ansible(folder: Path, **hosts: object) -> HostList:
    """Return what is read of hosts with these variables, as `ansible-inventory --list` has them."""
    path = folder / "hosts.json"
    groups = {"_meta": {"hostvars": hosts}, "gpu": {"hosts": [*hosts]}}
    path.write_text(json.dumps(groups))
    return host_lists.ansible(path)


def scontrol(folder: Path, text: str) -> HostList:
    """Return what is read of an output of `scontrol show nodes`."""
    path = folder / "it"
    path.write_text(text)
    return host_lists.scontrol(path)


def one(found: HostList) -> DraftNode:
    """Return the only host of a list, from which nothing is left out."""
    (listed,) = found.hosts
    assert found.refused == []
    return listed


def test_ansible_inventories_name_hosts_and_how_they_are_reached() -> None:
    """They are read from what ansible-inventory --list prints."""
    hosts = host_lists.ansible(SAMPLES / "ansible.json").hosts
    assert {one.name: (one.address, one.user, one.port, one.identity) for one in hosts} == ANSIBLE


def test_hostfile_of_openmpi_names_hosts() -> None:
    """In its order; slots are what it claims of GPUs."""
    assert host_lists.hostfile(SAMPLES / "hostfile").hosts == [
        DraftNode("foo.example.com", "foo.example.com"),
        DraftNode("bar.example.com", "bar.example.com", claimed_gpus=2),
        DraftNode("yow.example.com", "yow.example.com", claimed_gpus=4),
        DraftNode("foo.example.com", "foo.example.com", claimed_gpus=8),
    ]


def test_hostfiles_have_ipv6_addresses() -> None:
    """They are parsed, and no colon cuts them."""
    assert host_lists.hostfile(SAMPLES / "hostfile_ipv6").hosts == [
        DraftNode("fd00-10--11", "fd00:10::11", claimed_gpus=8),
        DraftNode("fd00-10--12", "fd00:10::12", claimed_gpus=8),
    ]


def test_lines_of_a_hostfile_say_users_ports_and_more(tmp_path: Path) -> None:
    """Blanks around the sign; what no inventory holds is passed over."""
    path = tmp_path / "hostfile"
    path.write_text("me@[fd00::1]:2222 slots = 4 max-slots=8\nyou@gpu02 rank=3\ngpu03.lab:3322\n")
    found = host_lists.hostfile(path)
    assert found.hosts == [
        DraftNode("fd00--1", "fd00::1", "me", 2222, claimed_gpus=4),
        DraftNode("gpu02", "gpu02", "you"),
        DraftNode("gpu03.lab", "gpu03.lab", port=3322),
    ]
    assert found.refused == []


def test_nodes_of_slurm_come_with_their_gpus(tmp_path: Path) -> None:
    """With a model in the Gres or without; also on one line each, with a Reason in free words."""
    found = host_lists.scontrol(SAMPLES / "scontrol.txt").hosts
    assert [(one.name, one.address, one.claimed_gpus) for one in found] == [
        ("gpu010", "gpu010", 4),
        ("gpu01", "gpu01", 8),
        ("gpu02", "gpu02", 4),
    ]
    line = "NodeName=a1 Gres=gpu:h100:8 NodeAddr=10.1.1.11 State=DOWN Reason=was NodeAddr=9.9.9.9"
    assert one(scontrol(tmp_path, line)) == DraftNode("a1", "10.1.1.11", claimed_gpus=8)


def test_a_list_on_standard_input_may_have_text_of_another_encoding() -> None:
    """An administrator may have typed a Reason= in Latin-1; a file with one is read too."""
    code = """
from pathlib import Path
from orchestrator.inputs import host_lists
print(*(host.name for host in host_lists.scontrol(Path("-")).hosts))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=commands.environment(PYTHONIOENCODING="utf-8"),
        input=b"\xef\xbb\xbfNodeName=gpu1 Reason=d\xe9faut\r\n\nNodeName=gpu2 State=IDLE\n",
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"gpu1 gpu2\n", b"")
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&-', sys.executable, code],
        capture_output=True,
        check=False,
    )
    assert b"NO-FILE: cannot read -: Bad file descriptor" in closed.stderr


def test_a_node_of_slurm_that_cannot_be_taken_hides_no_other(tmp_path: Path) -> None:
    """A name that DNS does not have, beside one with an address."""
    found = scontrol(tmp_path, "NodeName=c_1 NodeAddr=c_1\nNodeName=d_1 NodeAddr=10.0.0.9")
    assert [one.name for one in found.hosts] == ["d_1"]
    (reason,) = found.refused
    assert reason.startswith(f"{tmp_path / 'it'}:c_1: address: got 'c_1'; needed an IP address or ")


def test_words_of_the_command_line_are_hosts() -> None:
    """A user before the address, a port after it; an IP address is its own name."""
    assert host_lists.host("me@gpu01.lab:2222") == DraftNode("gpu01.lab", "gpu01.lab", "me", 2222)
    assert host_lists.host("10.0.0.11").name == "10.0.0.11"
    assert host_lists.host("fe80::1") == DraftNode("fe80--1", "fe80::1")
    assert host_lists.host("fe80::1%eth0") == DraftNode("fe80--1-eth0", "fe80::1%eth0")
    assert host_lists.host("[FD00:0::11]:22") == DraftNode("fd00--11", "fd00::11", port=22)
    assert host_lists.host("::1").name == "node---1"
    assert host_lists.host("g") == DraftNode("node-g", "g")
    long = f"gpu01.{'x' * 60}.lab"
    assert host_lists.host(long) == DraftNode("gpu01", long)
    for word in ("@x", "-oProxyCommand=x", "a b", "", "gpu01:", "gpu01:99999", "fd00::x", "u@"):
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


@pytest.mark.parametrize(
    "text",
    [
        "all:\n  hosts: {gpu01: {}}\n",
        "[gpu]\ngpu01 ansible_host=10.0.0.1\n",
        '{"all": \n',
        "gpu01\n",
    ],
)
def test_what_ansible_alone_can_read_is_told_with_the_command(tmp_path: Path, text: str) -> None:
    """YAML, INI, and JSON that is broken."""
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(errors.UsageError) as refused:
        host_lists.ansible(path)
    assert refused.value.code == "HOST"
    assert f"ansible-inventory -i {path} --list" in refused.value.fix


def test_ports_stand_behind_names_and_addresses(tmp_path: Path) -> None:
    """In the variable as behind the address, of IPv6 too."""
    found = ansible(
        tmp_path,
        a1={"ansible_host": "a1.lab:3322"},
        b1={"ansible_host": "fd00::2", "ansible_port": 23},
        c1={"ansible_host": "[fd00::3]:24", "ansible_ssh_private_key_file": "~/.ssh/a"},
    )
    assert [(one.address, one.port) for one in found.hosts] == [
        *(("a1.lab", 3322), ("fd00::2", 23), ("fd00::3", 24)),
    ]


@pytest.mark.parametrize(
    ("options", "jump"),
    [
        ("-o ProxyJump=me@login:22", "me@login:22"),
        ("-J gate -C", "gate"),
        ("-Ju@b", "u@b"),
        ("-J a,b", None),
        ("-o ProxyJump=none", None),
        ('-o ProxyCommand="ssh -W %h:%p -q u@b"', "u@b"),
        ('-oProxyCommand="ssh -q -W %h:%p u@b"', "u@b"),
        ('-o ProxyCommand="ssh b nc %h %p"', None),
        ('-o ProxyCommand="sshpass -p secret ssh -W %h:%p b"', None),
        ("-o StrictHostKeyChecking=no -F x", None),
    ],
)
def test_a_bastion_is_the_jump_host(tmp_path: Path, options: str, jump: str | None) -> None:
    """The usual ways to name a jump host are read from any variable; other options are ignored."""
    said = {"ansible_ssh_args": "-C", "ansible_ssh_common_args": options}
    assert one(ansible(tmp_path, gpu01=said)) == DraftNode("gpu01", "gpu01", jump=jump)


@pytest.mark.parametrize(
    ("name", "said", "seen"),
    [
        ("gpu01", {"ansible_user": "{{ who }}"}, ":gpu01: user: got '{{ who }}'; needed 2 to 63"),
        ("gpu01", {"ansible_port": "ssh"}, ":gpu01: ansible_port is ssh; needed a number"),
        ("gpu_01", {}, ":gpu_01: got 'gpu_01'; needed an IP address or a host name, "),
        ("gpu01", {"ansible_user": "a/b"}, ":gpu01: user: got 'a/b'; needed 2 to 63 letters"),
        ("gpu01", {"ansible_host": "fe80::1%eth0"}, ":gpu01: address: got 'fe80::1%eth0'; needed"),
        ("gpu01", {"ansible_host": "a:b"}, ":gpu01: got 'a:b'; needed host:port"),
    ],
)
def test_a_host_that_cannot_be_taken_hides_no_other(
    tmp_path: Path, name: str, said: dict[str, str], seen: str
) -> None:
    """Each is named with its place and why."""
    found = ansible(tmp_path, **{name: said, "gpu02": {}})
    assert [one.name for one in found.hosts] == ["gpu02"]
    (reason,) = found.refused
    assert seen in reason


def test_a_host_with_an_underscore_is_taken_by_its_address(tmp_path: Path) -> None:
    """As the refusal of its name alone suggests."""
    found = one(ansible(tmp_path, gpu_01={"ansible_host": "10.0.0.1"}))
    assert found == DraftNode("gpu_01", "10.0.0.1")


def test_lines_of_a_hostfile_that_name_no_host_are_told(tmp_path: Path) -> None:
    """By file and line."""
    path = tmp_path / "hostfile"
    path.write_text("\n\ngpu02,gpu03\ngpu04\n")
    found = host_lists.hostfile(path)
    assert [one.name for one in found.hosts] == ["gpu04"]
    assert [text.removeprefix(str(path)) for text in found.refused] == [
        ":3: got 'gpu02,gpu03'; needed an IP address or a host name",
    ]


def test_lists_that_are_none_are_refused(tmp_path: Path) -> None:
    """Files that are not there, and JSON that is none of Ansible's; an empty list has no host."""
    (tmp_path / "empty").write_text("# nobody\n")
    (tmp_path / "other.json").write_text('{"hosts": ["a"]}')
    with pytest.raises(errors.UsageError):
        host_lists.ansible(tmp_path / "other.json")
    with pytest.raises(errors.UsageError):
        host_lists.hostfile(tmp_path / "gone")
    assert host_lists.hostfile(tmp_path / "empty").hosts == []
    assert scontrol(tmp_path, "slurm_load_node error").hosts == []
