"""Hosts of the command line and of other tools' lists; the nodes that --nodes selects."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator import errors
from orchestrator.inputs import host_lists, probing, sites, user_files
from orchestrator.inputs.host_lists import HostList
from orchestrator.model.cluster import Cluster
from orchestrator.planning.inventory_draft import DraftNode
from orchestrator.probes import Probe
from orchestrator.probes import host as host_probe
from orchestrator.transports import Completed
from tests import commands

SAMPLES = Path(__file__).parents[1] / "samples" / "hosts"
KEY = "~/.ssh/cluster"


def ansible(folder: Path, **hosts: object) -> HostList:
    """Return the list of hosts with these variables, in the form of `ansible-inventory --list`."""
    path = folder / "hosts.json"
    groups = {"_meta": {"hostvars": hosts}, "gpu": {"hosts": [*hosts]}}
    path.write_text(json.dumps(groups))
    return host_lists.ansible(path)


def scontrol(folder: Path, text: str) -> HostList:
    """Return the list of an output of `scontrol show nodes`."""
    path = folder / "it"
    path.write_text(text)
    return host_lists.scontrol(path)


def one(found: HostList) -> DraftNode:
    """Return the only host of a list from which no host is left out."""
    (listed,) = found.hosts
    assert found.refused == []
    return listed


def test_recorded_lists_of_other_tools_are_read() -> None:
    """Of ansible-inventory, of OpenMPI with names and with IPv6, and of scontrol."""
    assert host_lists.ansible(SAMPLES / "ansible.json").hosts == [
        DraftNode("login", "129.0.0.1", "opc"),
        DraftNode("gpu-01", "gpu-01", "opc", identity=KEY),
        DraftNode("gpu-02", "gpu-02", "opc", identity=KEY),
        DraftNode("gpu-03", "192.168.168.13", "nobody", 2222, KEY),
    ]
    assert host_lists.hostfile(SAMPLES / "hostfile").hosts == [
        DraftNode("foo.example.com", "foo.example.com"),
        DraftNode("bar.example.com", "bar.example.com", claimed_gpus=2),
        DraftNode("yow.example.com", "yow.example.com", claimed_gpus=4),
        DraftNode("foo.example.com", "foo.example.com", claimed_gpus=8),
    ]
    assert host_lists.hostfile(SAMPLES / "hostfile_ipv6").hosts == [
        DraftNode("fd00-10--11", "fd00:10::11", claimed_gpus=8),
        DraftNode("fd00-10--12", "fd00:10::12", claimed_gpus=8),
    ]
    assert host_lists.scontrol(SAMPLES / "scontrol.txt").hosts == [
        DraftNode("gpu010", "gpu010", claimed_gpus=4),
        DraftNode("gpu01", "gpu01", claimed_gpus=8),
        DraftNode("gpu02", "gpu02", claimed_gpus=4),
    ]


def test_lines_of_a_hostfile_have_users_ports_and_slots(tmp_path: Path) -> None:
    """Lines that name no host are listed with their numbers."""
    path = tmp_path / "hostfile"
    lines = "me@[fd00::1]:2222 slots = 4 max-slots=8\nyou@gpu02 rank=3\n\ngpu02,gpu03\n"
    path.write_text(f"{lines}gpu03.lab:3322\n")
    found = host_lists.hostfile(path)
    assert found.hosts == [
        DraftNode("fd00--1", "fd00::1", "me", 2222, claimed_gpus=4),
        DraftNode("gpu02", "gpu02", "you"),
        DraftNode("gpu03.lab", "gpu03.lab", port=3322),
    ]
    needed = "got 'gpu02,gpu03'; needed an IP address or a host name"
    assert found.refused == [f"{path}:4: {needed}"]


def test_nodes_of_slurm_are_read_past_a_reason_in_free_words(tmp_path: Path) -> None:
    """A node whose name DNS does not allow is left out, and no other."""
    line = "NodeName=a1 Gres=gpu:h100:8 NodeAddr=10.1.1.11 State=DOWN Reason=was NodeAddr=9.9.9.9"
    assert one(scontrol(tmp_path, line)) == DraftNode("a1", "10.1.1.11", claimed_gpus=8)
    found = scontrol(tmp_path, "NodeName=c_1 NodeAddr=c_1\nNodeName=d_1 NodeAddr=10.0.0.9")
    assert [host.name for host in found.hosts] == ["d_1"]
    (reason,) = found.refused
    assert reason.startswith(f"{tmp_path / 'it'}:c_1: address: got 'c_1'; needed an IP address or ")


def test_a_list_on_standard_input_may_have_text_of_another_encoding() -> None:
    """An administrator may have typed a Reason= in Latin-1; a closed input is an error."""
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


LONG = f"gpu01.{'x' * 60}.lab"


@pytest.mark.parametrize(
    ("word", "host"),
    [
        ("me@gpu01.lab:2222", DraftNode("gpu01.lab", "gpu01.lab", "me", 2222)),
        ("10.0.0.11", DraftNode("10.0.0.11", "10.0.0.11")),
        ("fe80::1", DraftNode("fe80--1", "fe80::1")),
        ("fe80::1%eth0", DraftNode("fe80--1-eth0", "fe80::1%eth0")),
        ("[FD00:0::11]:22", DraftNode("fd00--11", "fd00::11", port=22)),
        ("::1", DraftNode("node---1", "::1")),
        ("g", DraftNode("node-g", "g")),
        (LONG, DraftNode("gpu01", LONG)),
    ],
)
def test_a_word_of_the_command_line_is_a_host_with_a_valid_name(word: str, host: DraftNode) -> None:
    assert host_lists.host(word) == host


@pytest.mark.parametrize(
    "word", ["@x", "-oProxyCommand=x", "a b", "", "gpu01:", "gpu01:99999", "fd00::x", "u@"]
)
def test_a_word_that_is_no_host_is_refused(word: str) -> None:
    with pytest.raises(errors.UsageError) as refused:
        host_lists.host(word)
    assert refused.value.code == "HOST"


def test_hosts_are_named_by_their_first_labels_where_these_differ() -> None:
    """A host that is listed twice counts once, as it is listed first."""
    words = "me@gpu02.lab gpu01.east.lab gpu01.west.lab 10.0.0.1 10.0.0.2 gpu02.lab"
    found = host_lists.distinct(map(host_lists.host, words.split()))
    assert [host.name for host in found] == [
        *("gpu02", "gpu01.east.lab", "gpu01.west.lab", "10.0.0.1", "10.0.0.2")
    ]
    assert found[0].user == "me"


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ({"ansible_host": "a1.lab:3322"}, DraftNode("a1", "a1.lab", port=3322)),
        ({"ansible_host": "fd00::2", "ansible_port": 23}, DraftNode("a1", "fd00::2", port=23)),
        (
            {"ansible_host": "[fd00::3]:24", "ansible_ssh_private_key_file": KEY},
            DraftNode("a1", "fd00::3", port=24, identity=KEY),
        ),
        *(
            (
                {"ansible_ssh_args": "-C", "ansible_ssh_common_args": options},
                DraftNode("a1", "a1", jump=jump),
            )
            for options, jump in (
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
            )
        ),
    ],
)
def test_variables_of_ansible_say_how_a_host_is_reached(
    tmp_path: Path, said: dict[str, object], host: DraftNode
) -> None:
    """The usual ways to name a jump host are read from any variable of options."""
    assert one(ansible(tmp_path, a1=said)) == host


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
def test_a_host_that_no_inventory_can_hold_is_left_out_with_the_reason(
    tmp_path: Path, name: str, said: dict[str, str], seen: str
) -> None:
    """Its address alone makes it acceptable, as the message suggests."""
    found = ansible(tmp_path, **{name: said, "gpu_02": {"ansible_host": "10.0.0.1"}})
    assert found.hosts == [DraftNode("gpu_02", "10.0.0.1")]
    (reason,) = found.refused
    assert seen in reason


@pytest.mark.parametrize(
    "text",
    [
        *("all:\n  hosts: {gpu01: {}}\n", "[gpu]\ngpu01 ansible_host=10.0.0.1\n"),
        *('{"all": \n', "gpu01\n", '{"hosts": ["a"]}'),
    ],
)
def test_a_list_that_only_ansible_can_read_is_refused_with_its_command(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(errors.UsageError) as refused:
        host_lists.ansible(path)
    assert refused.value.code == "HOST"
    assert f"ansible-inventory -i {path} --list" in refused.value.fix


def test_an_empty_list_has_no_host_and_an_absent_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nobody\n")
    assert host_lists.hostfile(tmp_path / "empty").hosts == []
    assert scontrol(tmp_path, "slurm_load_node error").hosts == []
    with pytest.raises(errors.UsageError):
        host_lists.hostfile(tmp_path / "gone")


FOUR = Cluster.model_validate_json(
    '{"name": "seeds", "nodes": ['
    + ",".join(f'{{"name": "vs00{n}", "address": "10.11.0.{n + 1}"}}' for n in range(1, 5))
    + "]}"
)


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        *((None, "1234"), ("vs001", "1"), ("vs004,vs002", "24"), ("vs00[1-3]", "123")),
        *(("!vs003", "124"), ("!vs003,!vs004", "12"), ("vs*,!vs001", "234"), ("!vs00[12]", "34")),
    ],
)
def test_nodes_are_selected_by_name_glob_or_exception(pattern: str | None, left: str) -> None:
    """They stay in the order of the inventory, which is rank order."""
    found = sites.narrow(FOUR, pattern)
    assert "".join(node.name[-1] for node in found.nodes) == left


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("vs009", "no node fits 'vs009'; there are vs001, vs002, vs003, vs004"),
        ("vs001,", "no node fits ''"),
        ("vs001,!vs001", "leaves no node"),
        ("!*", "leaves no node"),
    ],
)
def test_a_pattern_without_a_node_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(errors.UsageError, match="NO-NODE") as raised:
        sites.narrow(FOUR, pattern)
    assert words in raised.value.cause


def queue(**said: Any) -> Cluster:
    """Return an inventory whose nodes Slurm gives."""
    slurm = {"partition": "main", "time": "04:00:00", "nodes": 4, **said.pop("slurm", {})}
    plain = {"name": "queue", "scheduler": "slurm", "slurm": slurm, "defaults": {}}
    return Cluster.model_validate({**plain, **said})


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ({"slurm": {"time": "00:30:00"}}, True),
        ({"slurm": {"nodes": 2}}, True),
        ({"slurm": {"account": "perf"}}, True),
        ({"slurm": {"partition": "other"}}, False),
        ({"slurm": {"extra": ("--constraint=h100",)}}, False),
        ({"env": {"NCCL_ALGO": "Ring"}}, False),
        ({"defaults": {"runtime": "process"}}, False),
        ({"defaults": {"roce": {"gid_index": 3}}}, False),
        ({"defaults": {"agent": True}}, False),
    ],
)
def test_the_digest_of_an_inventory_changes_with_its_nodes(
    said: dict[str, Any], same: bool
) -> None:
    """Nodes that were fit in one job are fit in a longer or a smaller job."""
    assert (sites.digest(queue(**said)) == sites.digest(queue())) is same


def test_the_digest_of_an_inventory_with_nodes_changes_with_them() -> None:
    narrow = FOUR.model_copy(update={"nodes": FOUR.nodes[:3]})
    assert sites.digest(FOUR.model_copy()) == sites.digest(FOUR) != sites.digest(narrow)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["/usr/sbin/nologin"],
            "exit status 1, printed 'This account is currently not available.'",
        ),
        (["/bin/false"], "exit status 1, printed nothing"),
        (["sh", "-c", "echo no such shell >&2; exit 3"], "(no such shell)"),
    ],
)
def test_an_answer_that_cannot_be_parsed_is_shown(argv: list[str], said: str) -> None:
    """The real programs of accounts without a shell print on standard output."""
    done = subprocess.run(argv, capture_output=True)
    probe = Probe("host", host_probe.argv("python3", "/tmp", ()), host_probe.parse)
    with pytest.raises(errors.UnfitError) as caught:
        probing.parse_output(probe, Completed(done.returncode, done.stdout, done.stderr), "node1")
    assert said in str(caught.value)


def test_a_programs_folder_has_one_digest_with_and_without_links(tmp_path: Path) -> None:
    """Links to a folder elsewhere, to a file and to itself; caches of Python are left out."""
    place, plain = tmp_path / "image", tmp_path / "plain"
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere" / "inner" / "part.py").write_text("1")
    (place / "__pycache__").mkdir(parents=True)
    (place / "__pycache__" / "x.pyc").write_text("2")
    (place / "main.py").symlink_to("../elsewhere/inner/part.py")
    (place / "lib").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (place / "round").symlink_to(".", target_is_directory=True)
    (place / "gone").symlink_to("nowhere")
    found = user_files.folder_files(place)
    assert found == {"lib/inner/part.py": b"1", "main.py": b"1"}
    for name, content in found.items():
        (plain / name).parent.mkdir(parents=True, exist_ok=True)
        (plain / name).write_bytes(content)
    assert user_files.folder_digest(plain) == user_files.folder_digest(place)
