"""The shipped scripts that put the benchmark's code into an image, with real git."""

import http.server
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.images.scripts import shell

PATCH = "ngc-pytorch-20.03/patch_main.sh"


def git(folder: Path, *argv: str) -> str:
    """Run git in a repository of the test; return its output."""
    config = ("user.name=t", "user.email=t@example.com", "init.defaultBranch=main")
    settings = [word for setting in config for word in ("-c", setting)]
    done = subprocess.run(
        ["git", "-C", str(folder), *settings, *argv], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str]:
    """Return a repository with the code in a folder, and the first of its two commits."""
    folder = tmp_path / "it.git"
    code = folder / "PyTorch" / "ConvNets"
    code.mkdir(parents=True)
    (code / "link.py").symlink_to("main.py")
    git(folder, "init", "--quiet")
    for number in ("one", "two"):
        (code / "main.py").write_text(f"# {number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", number)
    return folder, git(folder, "rev-parse", "HEAD~")


@pytest.fixture
def served(repository: tuple[Path, str]) -> Iterator[str]:
    """Yield the repository's URL on a plain web server, which does not speak git's protocol."""
    git(repository[0], "update-server-info")
    handler = partial(_Silent, directory=str(repository[0]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/.git"
    server.shutdown()
    server.server_close()
    thread.join()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def test_code_is_taken_as_it_was_at_its_commit(
    repository: tuple[Path, str], tmp_path: Path
) -> None:
    """Earlier files in its place are removed, and git's own files are left out."""
    folder, first = repository
    target = tmp_path / "workspace" / "rn50"
    target.mkdir(parents=True)
    (target / "old.py").write_text("")
    for _ in range(2):
        done = shell(
            "scripts/source.sh", f"file://{folder}", first, "PyTorch/ConvNets", str(target)
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(path.name for path in target.iterdir()) == ["link.py", "main.py"]
        assert (target / "link.py").read_text() == "# one\n"


def test_code_is_taken_from_a_plain_web_server_too(
    served: str, repository: tuple[Path, str], tmp_path: Path
) -> None:
    """Without a path the whole repository is taken."""
    done = shell("scripts/source.sh", served, repository[1], "", str(tmp_path / "all"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "all" / "PyTorch" / "ConvNets" / "main.py").read_text() == "# one\n"
    assert not (tmp_path / "all" / ".git").exists()


@pytest.mark.parametrize(
    ("url", "commit", "path", "words"),
    [
        ("{tmp}/absent", "", "PyTorch", "absent cannot be fetched"),
        ("{tmp}/it.git", "0" * 40, "PyTorch", f"has no commit {'0' * 40}"),
        ("{tmp}/it.git", "", "TensorFlow", "has no folder TensorFlow"),
    ],
)
def test_code_that_is_not_there_ends_the_build(
    repository: tuple[Path, str], tmp_path: Path, url: str, commit: str, path: str, words: str
) -> None:
    """No such repository, commit or folder; the target stays as it was."""
    target = tmp_path / "target"
    target.mkdir()
    place = f"file://{url.format(tmp=tmp_path)}"
    done = shell("scripts/source.sh", place, commit or repository[1], path, str(target))
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1]
    assert target.is_dir()


def test_an_image_without_git_says_where_to_ask_for_it(tmp_path: Path) -> None:
    sh = tmp_path / "bin" / "sh"
    sh.parent.mkdir()
    sh.symlink_to("/bin/sh")
    words = ("file:///nowhere", "0" * 40, "", str(tmp_path / "x"))
    done = shell("scripts/source.sh", *words, PATH=str(sh.parent))
    assert done.returncode == 1
    assert "git is not there; needed it in apt.packages" in done.stderr


CALL = "torch.cuda.set_device(args.gpu)"
ADDED = "args.gpu = torch.cuda.device_count()"


def main_py(before: int, indent: str, end: str = "") -> str:
    """Return a main.py with the call at the line after so many others."""
    lines = ["# code"] * before + [
        f"{indent}args.gpu = args.local_rank % torch.cuda.device_count()",
        f"{indent}{CALL}{end}",
        f'{indent}dist.init_process_group(backend="nccl", init_method="env://")',
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("line", [310, 311, 272])
@pytest.mark.parametrize("indent", ["        ", "\t"])
def test_a_line_is_added_after_the_call(tmp_path: Path, line: int, indent: str) -> None:
    """The seed says line 310, its commit has 311, others 272 and more: the content decides."""
    file = tmp_path / "main.py"
    file.write_text(main_py(line - 2, indent))
    assert shell(PATCH, str(file)).returncode == 0
    lines = file.read_text().splitlines()
    assert lines[line - 1 : line + 1] == [f"{indent}{CALL}", f"{indent}{ADDED}"]
    lines.pop(line)
    assert "\n".join(lines) + "\n" == main_py(line - 2, indent)


@pytest.mark.parametrize("end", ["", "  # one per process"])
@pytest.mark.parametrize("note", ["", " # modify here"])
def test_a_second_patch_changes_nothing(tmp_path: Path, end: str, note: str) -> None:
    """Also not a file that was patched by hand, as the seed shows it."""
    file = tmp_path / "main.py"
    file.write_text(main_py(3, "        ", end))
    file.chmod(0o640)
    shell(PATCH, str(file))
    once = file.read_text().replace(ADDED, f"{ADDED}{note}")
    assert once.count(ADDED) == 1
    file.write_text(once)
    assert shell(PATCH, str(file)).returncode == 0
    assert (file.read_text(), file.stat().st_mode & 0o777) == (once, 0o640)


def test_a_call_on_the_last_line_gets_its_line(tmp_path: Path) -> None:
    file = tmp_path / "main.py"
    file.write_text(f"  {CALL}")
    assert shell(PATCH, str(file)).returncode == 0
    assert file.read_text() == f"  {CALL}\n  {ADDED}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch\n", "is there 0 times; needed it once"),
        (f"# {CALL}\n", "is there 0 times; needed it once"),
        (main_py(1, "    ") * 2, "is there 2 times; needed it once"),
        (None, "needed ConvNets' main.py"),
    ],
)
def test_a_file_without_one_such_call_is_refused_unchanged(
    tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "main.py"
    if text:
        file.write_text(text)
    done = shell(PATCH, str(file))
    assert done.returncode == 1
    assert words in done.stderr
    assert not text or file.read_text() == text
