"""What puts the benchmark's code into an image: the shipped scripts, with real git."""

import http.server
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.images.scripts import shell


def git(folder: Path, *argv: str) -> str:
    """What git says in a repository of the test."""
    config = ("user.name=t", "user.email=t@example.com", "init.defaultBranch=main")
    settings = [word for setting in config for word in ("-c", setting)]
    done = subprocess.run(
        ["git", "-C", str(folder), *settings, *argv], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str, str]:
    """A repository with the code in a folder, its first commit, and its second."""
    folder = tmp_path / "it.git"
    code = folder / "PyTorch" / "ConvNets"
    code.mkdir(parents=True)
    git(folder, "init", "--quiet")
    commits = []
    for number in ("one", "two"):
        (code / "main.py").write_text(f"# {number}\n")
        (code / "link.py").unlink(missing_ok=True)
        (code / "link.py").symlink_to("main.py")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", number)
        commits.append(git(folder, "rev-parse", "HEAD"))
    return folder, commits[0], commits[1]


@pytest.fixture
def served(repository: tuple[Path, str, str]) -> Iterator[str]:
    """The repository's URL on a plain web server, which hands out files and knows no git."""
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
        """Say nothing."""


def test_code_comes_as_it_was_at_its_commit(
    repository: tuple[Path, str, str], tmp_path: Path
) -> None:
    """Not as the branch is now; whatever lay in its place is gone, and git's own files too."""
    folder, first, _ = repository
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


def test_code_comes_from_a_plain_web_server_too(
    served: str, repository: tuple[Path, str, str], tmp_path: Path
) -> None:
    """A mirror need not speak git's protocol; without a path the whole repository is taken."""
    done = shell("scripts/source.sh", served, repository[1], "", str(tmp_path / "all"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "all" / "PyTorch" / "ConvNets" / "main.py").read_text() == "# one\n"
    assert not (tmp_path / "all" / ".git").exists()


def test_code_that_cannot_be_had_ends_the_build(
    repository: tuple[Path, str, str], tmp_path: Path
) -> None:
    """No such repository, commit or folder: each in words, and what lay there stays."""
    folder, first, _ = repository
    target = tmp_path / "target"
    target.mkdir()
    wrong = (
        (f"file://{tmp_path}/absent", first, "PyTorch", "absent cannot be fetched"),
        (f"file://{folder}", "0" * 40, "PyTorch", f"has no commit {'0' * 40}"),
        (f"file://{folder}", first, "TensorFlow", "has no folder TensorFlow"),
    )
    for url, commit, path, words in wrong:
        done = shell("scripts/source.sh", url, commit, path, str(target))
        assert done.returncode == 1
        assert words in done.stderr.splitlines()[-1]
        assert target.is_dir()


def test_image_without_git_says_so(repository: tuple[Path, str, str], tmp_path: Path) -> None:
    """The base may lack it; the message says where to ask for it."""
    url = f"file://{repository[0]}"
    sh = tmp_path / "bin" / "sh"
    sh.parent.mkdir()
    sh.symlink_to("/bin/sh")
    done = shell(
        "scripts/source.sh", url, repository[1], "", str(tmp_path / "x"), PATH=str(sh.parent)
    )
    assert done.returncode == 1
    assert "git is not there; needed it in apt.packages" in done.stderr


CALL = "torch.cuda.set_device(args.gpu)"
ADDED = "args.gpu = torch.cuda.device_count()"


def main_py(before: int, indent: str, end: str = "") -> str:
    """A main.py with the call at the line after so many others."""
    lines = ["# code"] * before + [
        f"{indent}args.gpu = args.local_rank % torch.cuda.device_count()",
        f"{indent}{CALL}{end}",
        f'{indent}dist.init_process_group(backend="nccl", init_method="env://")',
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("line", [310, 311, 272, 303, 372])
@pytest.mark.parametrize("indent", ["        ", "    ", "\t"])
def test_line_is_added_wherever_the_call_stands(tmp_path: Path, line: int, indent: str) -> None:
    """The seed says 310, its commit has 311, others 272 and more: the content decides."""
    file = tmp_path / "main.py"
    file.write_text(main_py(line - 2, indent))
    assert shell("ngc-pytorch-20.03/patch_main.sh", str(file)).returncode == 0
    lines = file.read_text().splitlines()
    assert lines[line - 1 : line + 1] == [f"{indent}{CALL}", f"{indent}{ADDED}"]
    lines.pop(line)
    assert "\n".join(lines) + "\n" == main_py(line - 2, indent)


@pytest.mark.parametrize("end", ["", "  # one per process"])
def test_second_patch_changes_nothing(tmp_path: Path, end: str) -> None:
    """The file's bytes and mode stay; so do those of one patched by hand, as the seed shows it."""
    file = tmp_path / "main.py"
    file.write_text(main_py(3, "        ", end))
    file.chmod(0o640)
    shell("ngc-pytorch-20.03/patch_main.sh", str(file))
    once = file.read_text()
    assert once.count(ADDED) == 1
    assert shell("ngc-pytorch-20.03/patch_main.sh", str(file)).returncode == 0
    assert (file.read_text(), file.stat().st_mode & 0o777) == (once, 0o640)
    by_hand = once.replace(f"        {ADDED}\n", f"        {ADDED} # modify here\n")
    file.write_text(by_hand)
    assert shell("ngc-pytorch-20.03/patch_main.sh", str(file)).returncode == 0
    assert file.read_text() == by_hand


def test_call_at_the_very_end_gets_its_line(tmp_path: Path) -> None:
    """Also where nothing follows it."""
    file = tmp_path / "main.py"
    file.write_text(f"  {CALL}")
    assert shell("ngc-pytorch-20.03/patch_main.sh", str(file)).returncode == 0
    assert file.read_text() == f"  {CALL}\n  {ADDED}\n"


@pytest.mark.parametrize(
    ("text", "count"), [("import torch\n", 0), (f"# {CALL}\n", 0), (main_py(1, "    ") * 2, 2)]
)
def test_file_without_one_such_place_is_refused(tmp_path: Path, text: str, count: int) -> None:
    """Nothing is guessed and nothing is changed."""
    file = tmp_path / "main.py"
    file.write_text(text)
    done = shell("ngc-pytorch-20.03/patch_main.sh", str(file))
    assert done.returncode == 1
    assert f"is there {count} times; needed it once" in done.stderr
    assert file.read_text() == text


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The path in source: was wrong, and the message says what was looked for."""
    done = shell("ngc-pytorch-20.03/patch_main.sh", str(tmp_path / "main.py"))
    assert done.returncode == 1
    assert "needed ConvNets' main.py" in done.stderr
