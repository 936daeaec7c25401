"""One mpirun on the leader; on the other nodes an sshd that serves it, and ends with the gang.

Keys, host keys and port are the attempt's own: they lie in its folder on each node and nowhere
else. One GPU runs bare and one node needs no sshd, as upstream does it.

Source: DLPerf, run_multi_node.sh and README of NGC TensorFlow ResNet50; ``man mpirun``,
``man sshd_config``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from orchestrator import errors
from orchestrator.logs.text import whole_lines
from orchestrator.model.plan import Command, Placement, Task
from orchestrator.model.text import Endpoint

# What sshd needs to let its user in; a container of ours has no capability else.
CAPABILITIES = ("SETGID", "SETUID", "SYS_CHROOT")
LEADER_FILES = ("id", "known_hosts", "ssh_config")
SERVICE_FILES = ("host_key", "authorized_keys", "sshd_config", "sshd.sh", "enter.sh")
"""File names; each gets its node_rank as a prefix, since nodes may share one folder."""
PRIVATE = ("id", "host_key")
# A second apart: the gates of a gang open within milliseconds, sshd starts after.
CONNECT_TRIES = 60

# Unbuffered, Python writes the words of a print one by one, and each gets a tag; with an empty
# value it writes lines, since mpirun gives ranks a terminal.
_WHOLE_PRINTS = ("-x", "PYTHONUNBUFFERED=")
_SSHD = """\
#!/bin/sh
# Serves one attempt's mpirun, with the environment of this task for whatever it starts.
umask 077
export -p >"${0%sshd.sh}env.sh"
mkdir -p /run/sshd 2>/dev/null
exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$PWD/${0%sshd.sh}sshd_config"
"""
_ENTER = """\
. "${0%enter.sh}env.sh"
cd "$(dirname "$0")" && exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


@dataclass(frozen=True, slots=True)
class Keys:
    private: str
    public: str


def launch(command: Command, placement: Placement) -> tuple[Task, ...]:
    """Return mpirun for the leader, with ``command.agent`` as options, and sshd for the others."""
    seats, gpus = placement.seats, placement.gpus_per_node
    ranks = ("-np", str(len(seats) * gpus))
    if len(seats) * gpus == 1:
        return (placement.task(0, command.program),)
    if len(seats) == 1:
        argv = ("mpiexec", "--allow-run-as-root", *command.agent, *ranks, *command.program)
        return (placement.task(0, argv),)
    first, *others = dict.fromkeys(seat.interface for seat in seats)
    if others:
        interfaces = ", ".join(f"{seat.node}: {seat.interface}" for seat in seats)
        raise errors.UsageError(
            f"mpirun takes one interface for all nodes; the inventory has {interfaces}",
            code="INTERFACES",
            fix="give the nodes' interfaces one name, or leave `interface` out everywhere",
        )
    interface: tuple[str, ...] = ()
    if first is not None:
        interface = ("-mca", "btl_tcp_if_include", first, "-mca", "oob_tcp_if_include", first)
    argv = (
        *("mpirun", "--allow-run-as-root", "--tag-output", *_WHOLE_PRINTS, *ranks),
        *("-H", ",".join(f"{seat.address}:{gpus}" for seat in seats)),
        *("--bind-to", "none", "--map-by", "slot"),
        *("-mca", "pml", "ob1", "-mca", "btl", "^openib"),
        *("-mca", "plm_rsh_agent", "ssh -F ssh_config", "-mca", "plm_rsh_no_tree_spawn", "1"),
        *interface,
        *command.program,
    )
    tasks = [replace(placement.task(0, argv), files=LEADER_FILES)]
    for node_rank in range(1, len(seats)):
        files = tuple(f"r{node_rank}.{name}" for name in SERVICE_FILES)
        sshd = ("sh", f"r{node_rank}.sshd.sh")
        service = replace(placement.task(node_rank, sshd), service=True, files=files)
        tasks.append(replace(service, capabilities=CAPABILITIES))
    return tuple(tasks)


def private(files: Iterable[str]) -> tuple[str, ...]:
    """Return the private keys among an attempt's files, which must not outlive it."""
    return tuple(name for name in files if name.rpartition(".")[2] in PRIVATE)


def leader_files(
    folder: str, user: Keys, hosts: Mapping[str, Keys], port: int
) -> Mapping[str, str]:
    """Return the leader's files by name; ``hosts`` are the keys of other nodes' sshd by address."""
    known = (f"[{address}]:{port} {keys.public}\n" for address, keys in hosts.items())
    settings = f"""\
Host *
Port {port}
IdentityFile {folder}/id
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
CheckHostIP no
BatchMode yes
ConnectionAttempts {CONNECT_TRIES}
ConnectTimeout 5
ServerAliveInterval 10
LogLevel ERROR
"""
    return {"id": user.private, "known_hosts": "".join(known), "ssh_config": settings}


def service_files(
    folder: str, node_rank: int, user: Keys, host: Keys, at: Endpoint
) -> Mapping[str, str]:
    """Return the files, by name, that any node but the leader needs in its attempt's folder."""
    prefix = f"{folder}/r{node_rank}."
    # StrictModes: /var/tmp is everybody's; the attempt's folder below it is ours alone.
    settings = f"""\
Port {at.port}
ListenAddress {at.host}
HostKey {prefix}host_key
AuthorizedKeysFile {prefix}authorized_keys
ForceCommand sh {prefix}enter.sh
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PubkeyAuthentication yes
PasswordAuthentication no
AllowTcpForwarding no
X11Forwarding no
MaxStartups 256
LogLevel ERROR
"""
    files = {
        "host_key": host.private,
        "authorized_keys": f"restrict {user.public}\n",
        "sshd_config": settings,
        "sshd.sh": _SSHD,
        "enter.sh": _ENTER,
    }
    return {f"r{node_rank}.{name}": content for name, content in files.items()}


def keep_ranks(chunks: Iterable[bytes], ranks: range) -> Iterator[bytes]:
    """Yield the ended lines of an mpirun's log; those of other ranks empty, to keep numbers."""
    for text in whole_lines(chunks):
        for line in text.split(b"\n")[:-1]:
            tag = re.match(rb"[^<]*,(\d{1,9})\]<std", line)  # [1,12]<stdout>:
            yield line + b"\n" if tag and int(tag[1]) in ranks else b"\n"
