"""Login shells and start-up files of nodes, each with a real sshd: works, or is named."""

import dataclasses
import getpass
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports.ssh import SshTransport
from tests.sshd import Sshd, free_port

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.daemons,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for an /etc/passwd of its own"),
]
# In a mount namespace of its own, where the user has another login shell.
WITHIN = 'mount --bind "$1/passwd" /etc/passwd; mount --bind "$1/etc" /etc/ssh; shift; exec "$@"'


@dataclasses.dataclass
class Login:
    """A login shell, and what its start-up files contain by path below HOME or /etc/ssh."""

    shell: str
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    named: tuple[str, ...] = ()


ECHO = "echo hello from a start-up file; echo oops >&2; printf 'no line break'\n"
LOGINS = {
    "bash that prints": Login("bash", {".bashrc": ECHO}),
    "bash that copies its input": Login(
        "bash", {".bashrc": "stty -echo; set -v; trap ECHO EXIT\n"}
    ),
    "bash that goes on as zsh": Login("bash", {".bashrc": "[ -t 0 ] || exec zsh\n"}),
    "bash with TMOUT, LC_ALL and a job": Login(
        "bash",
        {
            ".bashrc": "readonly TMOUT=1; export TMOUT LC_ALL=xx_XX.UTF-8\n"
            "sleep 30 & cd /; sh() { :; }\n"
        },
    ),
    "dash": Login("dash"),
    "zsh that prints": Login("zsh", {".zshenv": f"{ECHO}alias sh=false\nsetopt xtrace\n"}),
    "fish that prints": Login("fish", {".config/fish/config.fish": ECHO}),
    "tcsh that prints": Login("tcsh", {".cshrc": "echo hello; set prompt = x\n"}),
    "sshrc that prints": Login("bash", {"/sshrc": "cat /etc/motd; echo hello\n"}),
    "nologin": Login("nologin", named=("not available", "chsh")),
    "bash that sleeps": Login("bash", {".bashrc": "sleep 60\n"}, ("start-up files", "no answer")),
    "bash that goes on as fish": Login("bash", {".bashrc": "exec fish\n"}, ("start-up files",)),
    "bash that ends": Login(
        "bash", {".bashrc": "echo go away; exit 3\n"}, ("start-up files", "go away")
    ),
}


@pytest.fixture
def login(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SshTransport]:
    """A transport to a node with that login."""
    wanted = LOGINS[request.param]
    program = shutil.which(wanted.shell, path="/bin:/usr/bin:/usr/sbin")
    if program is None:
        pytest.skip(f"needs {wanted.shell}")
    home = tmp_path / "sshd"
    for name, text in wanted.files.items():
        path = tmp_path / "etc" / name[1:] if name.startswith("/") else home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "etc").mkdir(exist_ok=True)
    user = getpass.getuser()
    lines = [line for line in Path("/etc/passwd").read_text().splitlines() if line]
    entry = f"{user}:x:{os.getuid()}:{os.getgid()}::{home}:{program}"
    others = [line for line in lines if not line.startswith(f"{user}:")]
    (tmp_path / "passwd").write_text("\n".join([entry, *others, ""]))
    within = ("unshare", "--mount", "sh", "-ec", WITHIN, "sh", str(tmp_path))
    server = Sshd(home, port=free_port(), within=within).start()
    transport = SshTransport(server.target())
    yield transport
    transport.close()
    server.stop()


@pytest.mark.parametrize(
    "login", [name for name, it in LOGINS.items() if not it.named], indirect=True
)
def test_any_login_shell_runs_commands_and_moves_files(login: SshTransport, tmp_path: Path) -> None:
    """Its answers are the command's own, whatever start-up files print."""
    words = ("a b", "$HOME", "'", "\\", "\n", "!", "ä", "%s")
    done = login.run(("printf", "%s|", *words), timeout_s=10)
    assert (done.exit_code, done.stdout.decode()) == (0, "".join(f"{word}|" for word in words))
    script = 'for word in $2; do echo "$word"; done; read -r line; echo $? >&2; exit 7'
    done = login.run(("sh", "-c", script, "sh", "x", "one two"), timeout_s=10)
    assert (done.exit_code, done.stdout, done.stderr) == (7, b"one\ntwo\n", b"1\n")
    login.put(b"content", str(tmp_path / "file"))
    assert login.get(str(tmp_path / "file"), own=True) == b"content"
    stream = login.open(("sh", "-c", 'echo "$1"; read -r line; echo "got $line"', "sh", "held"))
    stream.settimeout(10)
    assert stream.recv(100) == b"held\n"
    time.sleep(1.5)  # longer than TMOUT
    stream.sendall(b"it\n")
    assert stream.recv(100) == b"got it\n"
    stream.close()
    login.put(b"more", str(tmp_path / "file"))  # by the shell that was kept
    assert login.get(str(tmp_path / "file"), 2) == b"re"


@pytest.mark.parametrize("login", [name for name, it in LOGINS.items() if it.named], indirect=True)
def test_a_login_shell_that_runs_no_command_is_explained(
    login: SshTransport, request: pytest.FixtureRequest
) -> None:
    """One line says what it printed, the user, and what to do."""
    wanted = LOGINS[request.node.callspec.params["login"]]
    limit_s = 4.0 if "no answer" in wanted.named else 30.0  # neighbours may have the processors
    began = time.monotonic()
    with pytest.raises(errors.NodeError) as raised:
        login.run(("true",), timeout_s=limit_s)
    error = raised.value
    assert error.code == "SSH-SHELL"
    assert "\n" not in str(error)
    assert getpass.getuser() in error.cause
    for word in wanted.named:
        assert word in str(error)
    assert time.monotonic() - began < limit_s + 12


def test_ps_shows_no_script(tmp_path: Path) -> None:
    """Neither that of a command nor that of a stream."""
    server = Sshd(tmp_path / "sshd").start()
    transport = SshTransport(server.target())
    secret = f"long-script-{os.getpid()}"
    shown = 'cat /proc/[0-9]*/cmdline | tr "\\0" " "'
    done = transport.run(("sh", "-c", f": {secret}\n{shown}"), timeout_s=10)
    stream = transport.open(("sh", "-c", f": {secret}\nread -r line"))
    lines = transport.run(("sh", "-c", shown), timeout_s=10).stdout + done.stdout
    assert b"/bin/sh" in lines
    assert secret.encode() not in lines
    stream.close()
    transport.close()
    server.stop()
