"""Real sshds on loopback, each with host keys, a configuration and a port of its own."""

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.model.node import Node
from orchestrator.transports import known_hosts
from tests.processes import PATIENCE_S

SSHD = "/usr/sbin/sshd"


def keygen(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A fresh key pair; the private key's path."""
    words = ("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path))
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def free_port() -> int:
    """A port of loopback that nobody uses at the moment."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@dataclass
class Sshd:
    """A server in a folder.

    ``options`` are lines of sshd_config; ``within`` is what enters its network namespace.
    """

    folder: Path
    options: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ("ed25519",)
    address: str = "127.0.0.1"
    port: int = 0
    within: tuple[str, ...] = ()
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def identity(self) -> Path:
        """The key that it lets in."""
        return self.folder / "id"

    @property
    def known_hosts(self) -> Path:
        """A file that knows its host keys."""
        return self.folder / "known_hosts"

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> "Sshd":
        """Start it and wait until it answers."""
        self.folder.mkdir(exist_ok=True)
        self.port = self.port or (22 if self.within else free_port())
        if not self.identity.exists():
            keygen(self.identity)
        for kind in self.kinds:
            if not self.host_key(kind).exists():
                keygen(self.host_key(kind), kind)
        self.know(*self.kinds)
        (self.folder / "config").write_text(self._config())
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.process = subprocess.Popen(
            (
                *(*self.within, SSHD, "-D"),
                *("-f", str(self.folder / "config"), "-E", str(self.folder / "log")),
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait()
        return self

    def stop(self) -> None:
        """End the listener and the sessions that it started."""
        if self.process is None:
            return
        for pid in self.sessions():
            _signal(pid, signal.SIGKILL)
        self.signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process = None

    def signal(self, number: int) -> None:
        """Send the listener a signal; its sessions go on."""
        assert self.process is not None
        _signal(self.process.pid, number)

    def sessions(self) -> list[int]:
        """Process ids of the sshds that serve a connection each."""
        return [] if self.process is None else _children(self.process.pid)

    def kill_sessions(self) -> None:
        """End every connection as a crash would; one ends by itself when its parent is gone."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def host_key(self, kind: str = "ed25519") -> Path:
        """Path of its private host key."""
        return self.folder / f"host_{kind}"

    def fingerprint(self, kind: str = "ed25519") -> str:
        """As ssh-keygen prints it."""
        words = ("ssh-keygen", "-l", "-f", f"{self.host_key(kind)}.pub")
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[1]

    def know(self, *kinds: str) -> None:
        """Write a known_hosts file with its keys of these kinds only."""
        lines = []
        for kind in kinds:
            words = Path(f"{self.host_key(kind)}.pub").read_text().split()
            name = known_hosts.format_name(self.address, self.port)
            lines.append(f"{name} {words[0]} {words[1]}\n")
        self.known_hosts.write_text("".join(lines))

    def target(self, **changes: object) -> Node:
        """How it is reached."""
        plain = Node(
            name="here",
            address=self.address,
            port=self.port,
            user=getpass.getuser(),
            identity=str(self.identity),
            known_hosts=str(self.known_hosts),
            folder="/tmp",
        )
        return plain.model_copy(update=changes)

    def _config(self) -> str:
        options = {
            "ListenAddress": f"{self.address}:{self.port}",
            "PidFile": "none",
            "AuthorizedKeysFile": f"{self.identity}.pub",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "LogLevel": "VERBOSE",
            # What the user of this machine has in his .bashrc is no part of a test.
            "SetEnv": f"HOME={self.folder}",
            **self.options,
        }
        keys = [f"HostKey {self.host_key(kind)}" for kind in self.kinds]
        return "\n".join([*keys, *(f"{name} {value}" for name, value in options.items()), ""])

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with socket.socket() as asked:
                if asked.connect_ex((self.address, self.port)) == 0:
                    return
            if time.monotonic() > deadline:
                raise AssertionError(f"sshd does not start: {self.log}")
            time.sleep(0.01)


def _children(pid: int) -> list[int]:
    """Every process below one, the nearest first; a process that ends meanwhile has none."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *_children(child)]
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
