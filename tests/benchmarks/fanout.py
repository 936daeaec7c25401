"""One command on many nodes over SSH: ours beside plain ssh through ``xargs -P``, as JSON.

    unshare --net python tests/benchmarks/fanout.py FOLDER NODES

The nodes are loopback addresses with one sshd, in a network namespace of their own. Its
MaxStartups is raised for the sake of the peer, which does not try again.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from orchestrator.__main__ import COLLECTED
from orchestrator.fleet import ask_all
from orchestrator.transports.ssh import SshTransport
from tests.sshd import Sshd

ROUNDS = 5
NODES = int(sys.argv[2])
ADDRESSES = tuple(f"127.0.{1 + at // 250}.{at % 250 + 1}" for at in range(NODES))
COMMAND = ("true",)
TIMEOUT_S = 60.0
STARTUP = "import orchestrator.fleet"


def main(folder: Path) -> None:
    """Measure in turns, so that what else the machine does meets both alike; print JSON."""
    gc.set_threshold(*COLLECTED)  # as the program does: 1,000 connections are many objects
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    options = {"MaxStartups": "4096", "MaxSessions": "10", "ListenAddress": "0.0.0.0:22"}
    sshd = Sshd(folder / "sshd", options, port=22).start()
    _know(sshd)
    shared = (*_ssh(sshd), "-o", f"ControlPath={folder}/m-%h")
    seconds: dict[str, list[float]] = {}
    try:
        with _masters(shared):
            for _ in range(ROUNDS):
                cold_s, warm_s = _ours_s(sshd)
                for name, value in (
                    ("cold ours", cold_s),
                    ("cold peer", _xargs_s(_ssh(sshd))),
                    ("warm ours", warm_s),
                    ("warm peer", _xargs_s(shared)),
                    ("start-up", _lasting_s((sys.executable, "-c", STARTUP))),
                ):
                    seconds.setdefault(name, []).append(value)
    finally:
        sshd.stop()
    print(json.dumps(seconds))


def _ours_s(sshd: Sshd) -> tuple[float, float]:
    """Seconds of the first command, connecting included, and of one more."""
    made = {a: SshTransport(sshd.target(name=a, address=a)) for a in ADDRESSES}

    def ask(node: str) -> int:
        return made[node].run(COMMAND, timeout_s=TIMEOUT_S).exit_code

    def once_s() -> float:
        began = time.perf_counter()
        answers = ask_all(ADDRESSES, ask)
        lasted_s = time.perf_counter() - began
        if any(answer.checked() for answer in answers):
            sys.exit("a command failed")
        return lasted_s

    try:
        return once_s(), once_s()
    finally:
        for transport in made.values():
            transport.close()


def _xargs_s(ssh: Sequence[str]) -> float:
    """Seconds of the same with a process of ssh for each node, all at once."""
    words = ("xargs", "-P", str(NODES), "-I{}", *ssh, "root@{}", *COMMAND)
    return _lasting_s(words, "\n".join(ADDRESSES))


def _lasting_s(words: Sequence[str], given: str = "") -> float:
    began = time.perf_counter()
    subprocess.run(words, input=given, text=True, check=True)
    return time.perf_counter() - began


def _ssh(sshd: Sshd) -> tuple[str, ...]:
    """Plain ssh with nothing of this machine's own settings.

    Its own first choice of a key exchange costs ten times the processor time of the one that
    paramiko has, on both sides; with the same one it is not slowed down by that.
    """
    said = {
        "KexAlgorithms": "curve25519-sha256",
        "IdentityFile": sshd.identity,
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": sshd.known_hosts,
        "BatchMode": "yes",
    }
    options = (word for name, value in said.items() for word in ("-o", f"{name}={value}"))
    return ("ssh", "-F", "none", "-n", *options)


@contextmanager
def _masters(ssh: Sequence[str]) -> Iterator[None]:
    """A warm connection to every node, for ssh to use; closed after the block."""
    opened = []
    try:
        for address in ADDRESSES:
            subprocess.run(
                (*ssh, "-o", "ControlPersist=600", "-M", "-f", f"root@{address}", "sleep 0"),
                check=True,
            )
            opened.append(address)
        yield
    finally:
        for address in opened:
            subprocess.run(
                (*ssh, "-q", "-O", "exit", f"root@{address}"), check=False, capture_output=True
            )


def _know(sshd: Sshd) -> None:
    """Write its one host key down under every address."""
    key = " ".join(Path(f"{sshd.host_key()}.pub").read_text().split()[:2])
    sshd.known_hosts.write_text("".join(f"{address} {key}\n" for address in ADDRESSES))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
