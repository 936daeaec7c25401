"""A real Docker engine of a test's own: containerd, dockerd, a registry, and a small image."""

import contextlib
import http.client
import http.server
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.deadlines import Patience
from orchestrator.runtimes.engine import Engine
from orchestrator.transports.local import LocalTransport
from tests import commands, processes
from tests.processes import PATIENCE_S, wait_for

IMAGE = "tiny:1"
# What the supervisor needs, and what tests run; the image is made of this machine's own.
PROGRAMS = (
    *("cat", "cut", "date", "dd", "echo", "env", "false", "grep", "head", "id", "ln", "ls"),
    *("mkdir", "mkfifo", "mv", "printf", "rm", "sed", "seq", "setsid", "sha256sum", "sleep"),
    *("stat", "sync", "tail", "touch", "tr", "true", "wc"),
)
QUICK = Patience(answer_s=10.0, stall_s=5.0, work_s=60.0, pause_s=0.1)
CONTAINERD = 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'


class Dockerd:
    """One engine below a folder, in a mount namespace of its own; reached by a unix socket."""

    def __init__(self, folder: Path, live_restore: bool, disk_mib: int) -> None:
        self.folder = folder
        self.socket = folder / "docker.sock"
        self.command = ("docker", "-H", f"unix://{self.socket}")
        self._opened: list[tuple[Engine, LocalTransport]] = []
        self._log = (folder / "daemons.log").open("ab")
        (folder / "containerd.toml").write_text(CONTAINERD)
        settings = {"live-restore": live_restore, **commands.image_store(0)}
        (folder / "daemon.json").write_text(json.dumps(settings))
        disk = f"mkdir {folder}/disk"
        if disk_mib:
            disk += f" && mount -t tmpfs -o size={disk_mib}m tdk {folder}/disk"
        apart = f"{disk} && touch {folder}/apart && exec sleep inf"
        self._space = self._run("unshare", "--mount", "--propagation=private", "sh", "-c", apart)
        wait_for((folder / "apart").exists, "a mount namespace of its own")
        self._containerd = self._inside(
            *("containerd", "--config", f"{folder}/containerd.toml"),
            *("--root", f"{folder}/disk/containerd", "--state", f"{folder}/state"),
            *("--address", f"{folder}/containerd.sock"),
        )
        wait_for((folder / "containerd.sock").exists, "containerd's socket")
        self._dockerd: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start dockerd and wait until it answers."""
        folder = self.folder
        self._dockerd = self._inside(
            *("dockerd", "--config-file", f"{folder}/daemon.json"),
            *("--host", f"unix://{self.socket}", "--pidfile", f"{folder}/docker.pid"),
            *("--data-root", f"{folder}/disk/docker", "--exec-root", f"{folder}/exec"),
            *("--containerd", f"{folder}/containerd.sock", "--bridge=none", "--iptables=false"),
            *("--ip-forward=false", "--max-download-attempts=1"),
        )
        wait_for(self._answers, "dockerd's answer")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send dockerd alone a signal; one that ends it is waited for."""
        assert self._dockerd is not None
        self._dockerd.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._dockerd.wait(PATIENCE_S)

    def docker(self, *words: str, data: bytes = b"") -> str:
        """What Docker's own command line prints."""
        done = subprocess.run(
            (*self.command, *words), input=data, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def engine(self, patience: Patience = QUICK, command: tuple[str, ...] | None = None) -> Engine:
        """This engine as the program sees it, on a node of the name `here`; closed at the end."""
        transport = LocalTransport("here")
        made = Engine(transport, command=command or self.command, patience=patience)
        self._opened.append((made, transport))
        return made

    def shims(self, container: str = "") -> tuple[int, ...]:
        """The processes between containerd and a container, given by id, or all of them."""
        found = []
        for path in processes.files("cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_text()
                if f"{self.folder}/containerd.sock" in words and container in words:
                    found.append(int(path.parent.name))
        return tuple(found)

    def stop(self) -> None:
        """End every process of it, containers and all."""
        for engine, transport in self._opened:
            engine.close()
            transport.close()
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            left = self.docker("ps", "-aq").split()
            self.docker("rm", "-f", *left) if left else None
        for process in (self._dockerd, self._containerd, self._space):
            if process is not None:
                process.terminate()
                process.wait(PATIENCE_S)
        for pid in self.shims():
            os.kill(pid, signal.SIGKILL)
        self._log.close()

    def _run(self, *words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def _inside(self, *words: str) -> "subprocess.Popen[bytes]":
        return self._run("nsenter", f"--mount=/proc/{self._space.pid}/ns/mnt", *words)

    def _answers(self) -> bool:
        done = subprocess.run((*self.command, "version"), capture_output=True, check=False)
        return done.returncode == 0


def unlike(dockerd: Dockerd, name: str, size_bytes: int = 3_000_000) -> str:
    """An image of so many bytes that no engine has seen; its id."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        entry = tarfile.TarInfo("noise")
        entry.size = size_bytes
        tar.addfile(entry, io.BytesIO(random.randbytes(entry.size)))
    dockerd.docker("import", "-", name, data=whole.getvalue())
    return dockerd.docker("image", "inspect", "-f", "{{.Id}}", name)


def context(dockerfile: str) -> bytes:
    """A build context with nothing but this."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        tar.addfile(entry, io.BytesIO(dockerfile.encode()))
    return whole.getvalue()


class Registry:
    """A real registry on a free port of the loopback interface, with users where they are given."""

    def __init__(self, folder: Path, htpasswd: str = "") -> None:
        folder.mkdir()
        auth = ""
        if htpasswd:
            (folder / "htpasswd").write_text(htpasswd)
            auth = f"auth: {{htpasswd: {{realm: here, path: {folder}/htpasswd}}}}\n"
        (folder / "config.yml").write_text(
            "version: 0.1\n"
            "log: {level: info}\n"
            f"storage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
            "http: {addr: 127.0.0.1:0}\n" + auth
        )
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ("docker-registry", "serve", f"{folder}/config.yml"),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self._port, "the registry's port")
        self.address = f"127.0.0.1:{self._port()}"

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def _port(self) -> str:
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", self._log.read_text())
        return found[1] if found else ""


@contextlib.contextmanager
def running(*, live_restore: bool = False, disk_mib: int = 0) -> Iterator[Dockerd]:
    """An engine with the small image, gone with everything of it at the end.

    Args:
        disk_mib: how much its data may take; 0 for as much as there is.
    """
    # A short path: a socket's may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="tdk-"))
    engine = None
    try:
        engine = Dockerd(folder, live_restore, disk_mib)
        engine.docker("import", "-", IMAGE, data=tiny_image())
        yield engine
    finally:
        if engine is not None:
            engine.stop()
        shutil.rmtree(folder)


def tiny_image() -> bytes:
    """The tar of a root with a shell, coreutils, grep, sed and setsid of this machine."""
    programs = [shutil.which(name) or name for name in PROGRAMS]
    linked = subprocess.run(("ldd", "/bin/dash", *programs), capture_output=True, check=True)
    libraries = set(re.findall(r"(/lib\S+)", linked.stdout.decode()))
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", dereference=True) as tar:
        tar.add("/bin/dash", "bin/sh")
        for path in programs:
            tar.add(path, f"bin/{Path(path).name}")
        for path in libraries:
            tar.add(path.rstrip(":"), path.rstrip(":"))
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o1777, time.time()
        tar.addfile(folder)
    return whole.getvalue()


class Faults(http.server.ThreadingHTTPServer):
    """A registry's front that does to some answers what is asked of it.

    ``fault`` is given each path and the whole answer's body and returns what to send instead: a
    status, another body, or a part of it after which the connection is cut or left silent.
    """

    daemon_threads = True

    def __init__(self, behind: Registry) -> None:
        super().__init__(("127.0.0.1", 0), _Front)
        self.behind = behind
        self.fault: Callable[[str, bytes], Fault | None] = lambda *_: None
        self.done = threading.Event()
        self.seen: list[str] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        """End it, silent connections and all."""
        self.done.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


@dataclass(frozen=True)
class Fault:
    """What is sent instead of an answer: its status, its body, how much of that, and then what."""

    status: int | None = None
    body: bytes = b""
    sent: int | None = None
    silent: bool = False


class _Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # engines try TLS first, and know plain HTTP by its answer
    server: Faults

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        upstream = http.client.HTTPConnection(self.server.behind.address, timeout=30)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():  # Accept comes once for each type
            upstream.putheader(name, value)
        upstream.endheaders()
        answer = upstream.getresponse()
        body = answer.read()
        fault = self.server.fault(self.path, body)
        self.server.seen.append(self.path)
        status = (fault and fault.status) or answer.status
        content = fault.body if fault else body
        self.send_response(status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "date", "server"):
                self.send_header(name, value)
        length = answer.headers["Content-Length"] if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if self.command == "GET":
            sent = content[: fault.sent] if fault else content
            half = len(sent) // 2
            self.wfile.write(sent[:half])
            if half > 1_000_000:
                time.sleep(0.3)  # engines tell how much came ten times a second
            self.wfile.write(sent[half:])
        upstream.close()
        if fault and fault.sent is not None:
            self.wfile.flush()
            self.server.done.wait() if fault.silent else None
            self.close_connection = True
