"""Bad inventories, playbooks and image files, each refused by the real command line."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import PROGRAM

INVENTORY = """\
name: lab
defaults:
  user: root
  port: 22
  gpus: {count: 8}
  hcas: [{name: mlx5_0, rate_gbps: 100}]
  data: {imagenet: /data/image}
  identity: ~/.ssh/bench_key
  interface: ib0
container:
  shm_size: 16g
  ulimits: {memlock: -1}
  privileged: false
registry: {mirror: 10.0.0.9:5000}
nodes:
  - {name: node1, address: 10.0.0.1}
  - {name: node2, address: 10.0.0.2}
"""
PLAYBOOK = """\
workload: reference_rn50
image: reference-rn50
inventory: local
device: cuda
method:
  repeats: 5
  iterations: 121
  window: [20, 120]
  time_limit_s: 600
grid:
  placement: [1x1, 1x2, 2x2]
  precision: [fp32]
  micro_batch_size: [4, 8]
params:
  image_size: 64
  memory_format: nhwc
"""
IMAGE = """\
name: my-image
base: nvcr.io/nvidia/pytorch:20.03-py3
requires: [torch]
python: python3
code: /workspace/mine
"""
PINNED = f"nvcr.io/nvidia/pytorch:20.03-py3@sha256:{'0' * 64}"
HUNDRED = list(range(1, 101))
OTHER_GRID = (
    "grid:\n  placement: [1x1, 1x2, 2x2]\n  precision: [fp32]\n  micro_batch_size: [4, 8]\n"
)
CASE = "{placement: 2x2, precision: fp32, micro_batch_size: 4"

# Row of the fault catalogue, file, what is replaced in it, by what, and words of the complaint.
# The sign ▶ is not written: it stands where the complaint must point.
ROWS = (
    ("B01", INVENTORY, "port: 22", "▶prot: 22", "unknown key 'prot'; did you mean 'port'?"),
    ("B01", INVENTORY, "gpus: {", "▶gpu: {", "unknown key 'gpu'; did you mean 'gpus'?"),
    ("B01", INVENTORY, "{count: 8", "{count: 8, ▶modle: x", "did you mean 'model'?"),
    ("B01", INVENTORY, "container:", "▶containers:", "did you mean 'container'?"),
    ("B01", INVENTORY, "memlock", "▶memlok", "did you mean 'memlock'?"),
    ("B01", PLAYBOOK, "time_limit_s", "▶time_limit", "did you mean 'time_limit_s'?"),
    ("B01", PLAYBOOK, "device: cuda", "▶devise: cuda", "did you mean 'device'?"),
    ("B01", PLAYBOOK, "device: cuda", "device: ▶gpu", "needed one of 'cpu', 'cuda'"),
    ("B01", PLAYBOOK, "image_size: 64", "image_sise: ▶64", "did you mean 'image_size'?"),
    ("B01", PLAYBOOK, "nhwc", "▶nhcw", "needed one of 'nhwc', 'nchw'; did you mean 'nhwc'?"),
    ("B01", PLAYBOOK, "[fp32]", "[▶fp23]", "did you mean 'fp32'?"),
    ("B01", IMAGE, "python:", "▶pyhton:", "did you mean 'python'?"),
    ("B02", INVENTORY, "port: 22", "port: 22\n  ▶port: 23", "first in line 4"),
    ("B02", INVENTORY, "{count: 8", "{count: 8, ▶count: 8", "a key for the second time"),
    ("B02", PLAYBOOK, "device: cuda", "device: cuda\n▶'device': cpu", "first in line 4"),
    ("B02", IMAGE, "name: my-image", "name: my-image\n▶name: other", "first in line 1"),
    ("B03", INVENTORY, "port: 22", "port: ▶'22'", "got '22' (text); needed a whole number"),
    ("B03", INVENTORY, "port: 22", "port: ▶22.0", "got 22.0 (a number); needed a whole number"),
    ("B03", INVENTORY, "port: 22", "port: ▶true", "got true; needed a whole number"),
    ("B03", INVENTORY, "privileged: false", "privileged: ▶0", "needed true or false"),
    ("B03", INVENTORY, "name: lab", "name: ▶5", "got 5 (a whole number); needed text; quote it"),
    ("B03", INVENTORY, "gpus: {count: 8}", "gpus: ▶8", "needed a mapping"),
    ("B03", INVENTORY, "[{name: mlx5_0, rate_gbps: 100}]", "▶mlx5_0", "such as ['mlx5_0']"),
    ("B03", PLAYBOOK, "repeats: 5", "repeats: ▶5.0", "got 5.0 (a number); needed a whole number"),
    ("B03", PLAYBOOK, "iterations: 121", "iterations: ▶'121'", "needed a whole number"),
    ("B03", PLAYBOOK, "[20, 120]", "▶20", "got a single value; needed a list, such as [20]"),
    ("B03", PLAYBOOK, "[20, 120]", "▶[20]", "needed 2 in it"),
    ("B03", PLAYBOOK, "[20, 120]", "[20, ▶120.0]", "needed a whole number"),
    ("B03", PLAYBOOK, "[1x1, 1x2, 2x2]", "▶2x2", "needed a list, such as ['2x2']"),
    ("B03", PLAYBOOK, "image_size: 64", "image_size: ▶64.5", "needed a whole number"),
    ("B03", IMAGE, "[torch]", "▶torch", "needed a list, such as ['torch']"),
    ("B04", INVENTORY, "port: 22", "port: ▶010", "octal number; needed a number without leading"),
    ("B04", INVENTORY, "port: 22", "port: ▶22:22", "a number to base 60"),
    ("B04", INVENTORY, "port: 22", "port: ▶0x16", "not a number to base 10"),
    ("B04", INVENTORY, "name: lab", "name: ▶no", "quote it if it is text: 'no'"),
    ("B04", INVENTORY, "name: lab", "name: ▶2020-01-01", "takes for a date"),
    ("B04", INVENTORY, "privileged: false", "privileged: ▶off", "needed true or false"),
    ("B04", PLAYBOOK, "[4, 8]", "[4, ▶yes]", "true or false; needed a whole number; quote it if"),
    ("B04", PLAYBOOK, "iterations: 121", "iterations: ▶on", "needed a whole number; quote it if"),
    ("B04", INVENTORY, "name: lab", "name: ▶no", "true or false; needed text; quote it if it is"),
    ("B04", PLAYBOOK, "repeats: 5", "repeats: ▶05", "needed a number without leading zeros"),
    ("B04", PLAYBOOK, "iterations: 121", "iterations: ▶1_000", "needed a number without '_'"),
    ("B04", PLAYBOOK, "image_size: 64", "▶no: 64", "got no as a key; needed text: quote it"),
    ("B05", INVENTORY, "{count: 8}", "▶&gpus {count: 8}", "an anchor (&)"),
    ("B05", INVENTORY, "{count: 8}", "▶*gpus", "an alias (*)"),
    ("B05", INVENTORY, "port: 22", "▶<<: {port: 22}", "a merge key; needed the keys written out"),
    ("B05", INVENTORY, "user: root", "user: ▶!!str root", "a tag (!)"),
    ("B05", IMAGE, "code: /", "code: ▶!!python/object/new:os.system /", "a tag (!)"),
    ("B08", INVENTORY, "port: 22", "port:▶\t22", "a tab; needed spaces"),
    ("B08", INVENTORY, "  port: 22", "▶\tport: 22", "a tab; needed spaces"),
    ("B08", INVENTORY, "  port: 22", "   port▶: 22", "a colon that ends no key"),
    ("B08", INVENTORY, "  port: 22", " ▶port: 22", "needed the same indent"),
    ("B08", INVENTORY, "gpus: {count: 8}", "gpus: ▶{count: 8", "a mapping that begins here"),
    ("B08", INVENTORY, "name: lab", "name: ▶@lab", "got '@' where a value begins"),
    ("B08", INVENTORY, "name: lab", "name: ▶'lab", "a quote that is never closed"),
    ("B08", PLAYBOOK, "device: cuda", "device: cuda\n▶---", "a second document"),
    ("B08", PLAYBOOK, "[fp32]", "▶- fp32", "a list on its key's line"),
    ("B08", IMAGE, "name: my-image", "▶%YAML 1.2\n---\nname: my-image", "a YAML directive"),
    ("B09", INVENTORY, "name: lab", "name: la▶\x00b", "a NUL character"),
    ("B09", INVENTORY, "name: lab", "name: la▶\u202eb", "control character U+202E"),
    ("B09", PLAYBOOK, "device: cuda", "device: ▶\x1b[31mcuda", "control character U+001B"),
    ("B10", INVENTORY, "10.0.0.2}", "▶10.0.0.1}", "also the address of nodes[0]"),
    ("B10", INVENTORY, "name: node2", "name: ▶node1", "also the name of nodes[0]"),
    ("B10", INVENTORY, "name: node2", "name: ▶NODE1", "also the name of nodes[0]"),
    ("B11", INVENTORY, "10.0.0.2}", "▶127.0.0.1}", "needed an address that the other nodes can"),
    ("B11", INVENTORY, "10.0.0.2}", "▶localhost}", "this machine for every node"),
    ("B11", INVENTORY, "10.0.0.2}", "▶0.0.0.0}", "this machine for every node"),
    ("B11", INVENTORY, "10.0.0.2}", '▶"fd00::2"}', "IPv6 beside IPv4"),
    ("B11", INVENTORY, "10.0.0.2}", "▶node_2.lab}", "needed an IP address or a host name"),
    ("B11", INVENTORY, "10.0.0.2}", "▶10.0.0.256}", "needed an IP address or a host name"),
    ("B11", INVENTORY, "10.0.0.2}", "▶10.0.0}", "needed an IP address or a host name"),
    ("B11", INVENTORY, "10.0.0.2}", "▶224.0.0.1}", "needed an IP address or a host name"),
    ("B12", INVENTORY, "name: lab", "name: ▶../../etc", "needed 2 to 63 letters"),
    ("B12", INVENTORY, "/data/image}", "▶/data/../etc}", "needed a path without '..'"),
    ("B12", INVENTORY, "/data/image}", "▶/etc/passwd}", "needed a folder that holds data"),
    ("B12", INVENTORY, "/data/image}", "▶/}", "needed a folder that holds data"),
    ("B12", INVENTORY, "/data/image}", "▶data/image}", "begins with '/' or '~/'"),
    ("B12", PLAYBOOK, "image: reference-rn50", "image: ▶../../etc", "needed an image's name"),
    ("B12", IMAGE, "/workspace/mine", "▶/workspace/../etc", "needed a path without '..'"),
    ("B13", INVENTORY, "name: lab", "name: ▶lab;reboot", "needed 2 to 63 letters"),
    ("B13", INVENTORY, "user: root", "user: ▶$(id)", "needed 2 to 63 letters"),
    ("B13", INVENTORY, "/data/image}", "▶/data/$(id)}", "no blanks or shell characters"),
    ("B13", INVENTORY, "interface: ib0", 'interface: ▶"ib0\\n"', r"got 'ib0\n'; needed 2 to 63"),
    ("B13", INVENTORY, "10.0.0.2}", '▶"fe80::1%;reboot"}', "needed an IP address or a host name"),
    ("B13", INVENTORY, "16g", "▶16g;id", "needed a whole number with k, m, g or t"),
    ("B13", INVENTORY, "10.0.0.9:5000}", "▶10.0.0.9|id}", "needed host or host:port"),
    ("B13", IMAGE, "python: python3", "python: ▶python3 -c x", "without blanks"),
    ("B13", IMAGE, "[torch]", "[▶torch;os]", "needed a Python module"),
    ("B13", IMAGE, "/workspace/mine", "▶/mine && rm", "no blanks or shell characters"),
    ("B14", INVENTORY, "10.0.0.2}", "▶-oProxyCommand=id}", "needed an IP address or a host name"),
    ("B14", INVENTORY, "10.0.0.2}", "10.0.0.2, jump: ▶-oProxyCommand=id}", "[user@]host[:port]"),
    ("B14", INVENTORY, "user: root", "user: ▶-l", "beginning with a letter or digit"),
    ("B14", INVENTORY, "~/.ssh/bench_key", "▶-F/etc/passwd", "begins with '/' or '~/'"),
    ("B14", IMAGE, "python: python3", "python: ▶-c", "needed a program's name or path"),
    ("B15", INVENTORY, "name: lab", "name: ▶x", "got 'x'; needed 2 to 63 letters"),
    ("B15", INVENTORY, "name: lab", f"name: ▶{'n' * 300}", "needed 2 to 63 letters"),
    ("B15", INVENTORY, "name: lab", 'name: ▶"lab\\n"', "needed 2 to 63 letters"),
    ("B15", INVENTORY, "name: lab", "name: ▶l\u0430b", "needed 2 to 63 letters"),
    ("B15", INVENTORY, "name: lab", "name: ▶lab\u200b", "needed 2 to 63 letters"),
    ("B15", INVENTORY, "name: lab", 'name: ▶"la\\x07b"', "control character U+0007"),
    (
        "B16",
        PLAYBOOK,
        "  placement: [1x1, 1x2, 2x2]",
        f"  ▶placement: [1x1]\n  tensor_parallel: {HUNDRED}\n  pipeline_parallel: {HUNDRED}",
        "100000 trials; needed at most 10000",
    ),
    (
        "B18",
        PLAYBOOK,
        OTHER_GRID,
        f"cases: [{CASE}, data_parallel: ▶3}}]\n",
        "data 3 x tensor 1 x pipeline 1 is not 4 ranks; needed data_parallel 4",
    ),
    ("B19", INVENTORY, "user: root", "user: root\n  ▶password: hunter2", "secrets do not belong"),
    ("B19", INVENTORY, "user: root", "user: root\n  password: ▶0123", "secrets do not belong"),
    ("B19", INVENTORY, ":5000}", ":5000, ▶token: hunter2}", "secrets do not belong"),
    ("B19", INVENTORY, "10.0.0.9:5000}", "▶me:hunter2@10.0.0.9}", "needed host or host:port"),
    ("B19", PLAYBOOK, "image_size: 64", "hf_token: ▶hunter2", "secrets do not belong"),
    ("B20", INVENTORY, INVENTORY, "▶", "nothing in the file; needed `key: value` lines"),
    ("B20", PLAYBOOK, PLAYBOOK, "▶~\n", "needed `key: value` lines"),
    ("B20", IMAGE, IMAGE, "▶[]\n", "got a list; needed `key: value` lines"),
    ("B20", IMAGE, IMAGE, "▶{}\n", "cannot tell what this file is"),
    ("B20", INVENTORY, "port: 22", "port:▶", "got nothing; needed a value, or no key at all"),
    ("B20", INVENTORY, "gpus: {count: 8}", "gpus: {count: ▶}", "got nothing"),
    ("B20", PLAYBOOK, "[1x1, 1x2, 2x2]", "▶[]", "got an empty list; needed at least 1 in it"),
    ("B20", PLAYBOOK, "memory_format: nhwc", "memory_format:▶", "got nothing; needed"),
    ("B20", PLAYBOOK, OTHER_GRID, "cases: ▶[]\n", "got an empty list"),
    ("B21", INVENTORY, "port: 22", "port: ▶0", "got 0; needed at least 1"),
    ("B21", INVENTORY, "port: 22", "port: ▶65536", "got 65536; needed at most 65535"),
    ("B21", INVENTORY, "{count: 8}", "{count: ▶-8}", "got -8; needed at least 1"),
    ("B21", INVENTORY, "gbps: 100", "gbps: ▶0", "got 0; needed at least 1"),
    ("B21", INVENTORY, "memlock: -1", "memlock: ▶-2", "got -2; needed at least -1"),
    ("B21", INVENTORY, "16g", "▶0g", "needed a whole number with k, m, g or t"),
    ("B21", PLAYBOOK, "repeats: 5", "repeats: ▶0", "got 0; needed at least 1"),
    ("B21", PLAYBOOK, "iterations: 121", "iterations: ▶-121", "got -121; needed at least 3"),
    ("B21", PLAYBOOK, "[20, 120]", "▶[0, 120]", "needed two iterations from 1 on"),
    ("B21", PLAYBOOK, "[20, 120]", "▶[20, 121]", "needed a window that ends by then"),
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶0", "got 0; needed more than 0"),
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶.inf", "needed a finite number"),
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶.nan", "needed a finite number"),
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶1e999", "needed a number of 64 bits"),
    ("B21", PLAYBOOK, "[4, 8]", "[4, ▶0]", "got 0; needed at least 1"),
    ("B21", PLAYBOOK, "1x2, 2x2]", "1x2, ▶04x8]", "needed nodes x GPUs per node, such as 4x8"),
    ("B21", PLAYBOOK, "image_size: 64", "image_size: ▶0", "got 0; needed at least 32"),
    ("B22", IMAGE, "nvcr.io/nvidia/pytorch:20.03-py3", "▶nvcr.io/x/y", "repository:tag"),
    ("B22", IMAGE, "nvcr.io/nvidia/pytorch", "▶pytorch", "needed registry/repository:tag"),
    ("B22", IMAGE, "nvcr.io", "▶NVCR.io", "needed registry/repository:tag"),
    ("B22", IMAGE, "nvcr.io/nvidia/pytorch:20.03-py3", f"▶{PINNED}", "the lock holds digests"),
    ("B22", PLAYBOOK, "reference-rn50", "▶reference-rn5", "did you mean 'reference-rn50'?"),
    ("B22", PLAYBOOK, "reference_rn50", "▶reference_rn", "did you mean 'reference_rn50'?"),
    ("B22", PLAYBOOK, "inventory: local", "inventory: ▶locale", "did you mean 'local'?"),
    ("seed", PLAYBOOK, "[4, 8]", "[4, 8, ▶4]", "4 is there twice; needed each value once"),
    ("seed", INVENTORY, "privileged: false", "privileged: ▶true", "needed `reason:` beside it"),
    ("seed", PLAYBOOK, "workload: reference_rn50\n", "▶", "cannot tell what this file is"),
    ("seed", IMAGE, "name: my-image\n", "▶", "key 'name' is missing; needed: text"),
)  # fmt: skip
KINDS = {INVENTORY: "inventory", PLAYBOOK: "playbook", IMAGE: "image"}


@dataclass(frozen=True)
class Bad:
    """A bad file: its content, where it is bad, and what must be said of it."""

    name: str
    content: str
    place: tuple[int, int]
    words: str


def bad_file(number: int, row: tuple[str, str, str, str, str]) -> Bad:
    """The file that a row of the table describes."""
    fault, good, old, new, words = row
    assert old in good, f"{old!r} is not in the {KINDS[good]}"
    marked = good.replace(old, new, 1)
    before, content = marked.split("▶")[0], marked.replace("▶", "")
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    return Bad(f"{number:03}-{fault.lower()}-{KINDS[good]}", content, place, words)


BAD = tuple(bad_file(number, row) for number, row in enumerate(ROWS))


def dlperf(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command line, run in a folder with a home of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DLPERF_")}
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env={**kept, "HOME": str(folder), "COLUMNS": "200", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, "subprocess.CompletedProcess[str]"]]:
    """What `check` says of each bad file, each in a process of its own, two at a time."""
    folder = tmp_path_factory.mktemp("bad")
    for bad in BAD:
        (folder / f"{bad.name}.yaml").write_bytes(bad.content.encode())
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda bad: dlperf(folder, "check", f"{bad.name}.yaml"), BAD)
        yield dict(zip((bad.name for bad in BAD), said, strict=True))


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad_file_is_refused_where_it_is_bad(
    answers: Mapping[str, "subprocess.CompletedProcess[str]"], bad: Bad
) -> None:
    """Exit 2, one line on standard error with file, line, column and what was needed, no more."""
    said = answers[bad.name]
    assert (said.returncode, said.stdout) == (2, "")
    (line,) = said.stderr.splitlines()
    assert line.startswith(f"{bad.name}.yaml:{bad.place[0]}:{bad.place[1]}: ")
    assert bad.words in line
    assert "hunter2" not in line
    assert "Traceback" not in line


def test_good_files_are_good(tmp_path: Path) -> None:
    """What the table starts from has no fault of its own; nothing is written beside it."""
    for good, kind in KINDS.items():
        (tmp_path / f"{kind}.yaml").write_text(good)
    names = [f"{kind}.yaml" for kind in KINDS.values()]
    said = dlperf(tmp_path, "check", "--json", *names)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == {
        "exit_code": 0,
        "files": {f"{kind}.yaml": kind for kind in KINDS.values()},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_nodes_behind_one_address_are_told_by_their_ports(tmp_path: Path) -> None:
    """B10, B11: address and port make a node; loopback is fine where all nodes are on it."""
    nodes = "  - {name: node1, address: 127.0.0.1, port: 2201}\n"
    nodes += "  - {name: node2, address: 127.0.0.1, port: 2202}\n"
    (tmp_path / "near.yaml").write_text(INVENTORY.partition("  - ")[0] + nodes)
    assert dlperf(tmp_path, "check", "near.yaml").returncode == 0


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 25)
)
CONTENTS: tuple[tuple[str, bytes, str, str], ...] = (
    ("b05-bomb", BOMB.encode(), "1:5", "an anchor (&)"),
    ("b06-deep", b"nodes: " + b"[" * 20_000, "1:39", "more than 32 lists and mappings"),
    ("b06-deep-keys", b"{a: " * 20_000, "1:129", "more than 32 lists and mappings"),
    ("b09-utf-16", INVENTORY.encode("utf-16"), "1:1", "UTF-16 or UTF-32; needed UTF-8"),
    ("b09-latin-1", "name: größe\n".encode("latin-1"), "1:9", "byte 0xf6 is not UTF-8"),
    ("b09-mark", INVENTORY.encode("utf-8-sig"), "1:1", "a byte order mark"),
    ("b07-large", b"#" * ((1 << 20) + 1), "1:1", "needed at most 1048576 bytes (1 MiB)"),
)


@pytest.mark.parametrize(
    ("name", "content", "place", "words"), CONTENTS, ids=lambda one: str(one)[:9]
)
def test_content_that_is_no_text_of_ours_is_refused(
    tmp_path: Path, name: str, content: bytes, place: str, words: str
) -> None:
    """B05 to B09: bombs, other encodings and sizes end in a line of words, at once."""
    (tmp_path / name).write_bytes(content)
    said = dlperf(tmp_path, "check", name)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith(f"{name}:{place}: ")
    assert words in said.stderr


def test_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """B07: two gigabytes, a device, a pipe, a folder and nothing, in one call, at once."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(2 << 30)
    said = dlperf(tmp_path, "check", "huge", "/dev/zero", "pipe", ".", "absent", "n" * 300)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        ".:1:1: a directory; needed a regular file",
        "/dev/zero:1:1: a device; needed a regular file",
        "absent:1:1: cannot be read: No such file or directory; needed a file that can be read",
        "huge:1:1: 2147483648 bytes or more; needed at most 1048576 bytes (1 MiB)",
        f"{'n' * 300}:1:1: cannot be read: File name too long; needed a file that can be read",
        "pipe:1:1: a pipe; needed a regular file",
    ]


def test_file_that_everyone_may_write_is_refused(tmp_path: Path) -> None:
    """B23: who may write the file may run anything as whom the nodes know."""
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "lab.yaml").chmod(0o666)
    said = dlperf(tmp_path, "check", "lab.yaml")
    assert said.returncode == 2
    assert said.stderr == "lab.yaml:1:1: everyone may write to it (mode 0666); needed chmod o-w\n"


def test_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """B23: the place of `identity`, the key's mode, and what to do; with mode 0600 it is fine."""
    (tmp_path / ".ssh").mkdir()
    key = tmp_path / ".ssh" / "bench_key"
    key.write_text("a key\n")
    key.chmod(0o640)
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    said = dlperf(tmp_path, "check", "lab.yaml")
    needed = "others may use the key ~/.ssh/bench_key (mode 0640); needed chmod 600"
    assert (said.returncode, said.stderr) == (2, f"lab.yaml:8:13: defaults.identity: {needed}\n")
    key.chmod(0o600)
    assert dlperf(tmp_path, "check", "lab.yaml").returncode == 0


@pytest.mark.parametrize("name", ["a b", "$(id)", "x", "n" * 64, "-rf"])
def test_playbook_with_an_unfit_file_name_is_refused(tmp_path: Path, name: str) -> None:
    """B12 to B15: a playbook's file name becomes part of folders and of names on the nodes."""
    (tmp_path / f"{name}.yaml").write_text(PLAYBOOK)
    said = dlperf(tmp_path, "check", f"./{name}.yaml")
    assert said.returncode == 2
    assert f"{name}.yaml:1:1: the file's name is " in said.stderr
    assert "needed 2 to 63 letters" in said.stderr


SEVEN = """nmae: lab
defaults:
  port: '22'
  gpus: {count: 0}
  transport: shh
nodes:
  - {name: x, address: 10.0.0.1}
  - {name: node2, gpu: 8}
"""


def test_all_complaints_of_a_file_come_at_once(tmp_path: Path) -> None:
    """One run shows everything that there is to correct, in the order of the file."""
    (tmp_path / "lab.yaml").write_text(SEVEN)
    said = dlperf(tmp_path, "check", "lab.yaml")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        "lab.yaml:1:1: key 'name' is missing; needed: text",
        "lab.yaml:1:1: nmae: unknown key 'nmae'; did you mean 'name'?",
        "lab.yaml:3:9: defaults.port: got '22' (text); needed a whole number",
        "lab.yaml:4:17: defaults.gpus.count: got 0; needed at least 1",
        "lab.yaml:5:14: defaults.transport: got 'shh'; needed one of 'ssh', 'local';"
        " did you mean 'ssh'?",
        "lab.yaml:7:12: nodes[0].name: got 'x'; needed 2 to 63 letters, digits, '_', '.' or '-',"
        " beginning with a letter or digit",
        "lab.yaml:8:5: nodes[1]: key 'address' is missing; needed: text",
        "lab.yaml:8:19: nodes[1].gpu: unknown key 'gpu'; did you mean 'gpus'?",
    ]


IMPOSSIBLE = """workload: reference_rm50
image: reference-rm50
inventory: nowhere
method: {repeats: 5, iterations: 121, window: [120, 20]}
params: {image_size: 64}
"""


def test_everything_that_contradicts_itself_comes_at_once(tmp_path: Path) -> None:
    """An unknown workload does not hide what else a playbook has wrong."""
    (tmp_path / "pb.yaml").write_text(IMPOSSIBLE)
    said = dlperf(tmp_path, "check", "pb.yaml").stderr
    places = [line.split(": ")[0] for line in said.splitlines()]
    assert places == [f"pb.yaml:{place}" for place in ("1:1", "1:11", "2:8", "3:12", "4:47")]


def test_several_files_are_judged_in_one_call(tmp_path: Path) -> None:
    """Complaints about all bad files; a good one among them is called good."""
    (tmp_path / "one.yaml").write_text(INVENTORY.replace("port: 22", "port: 0"))
    (tmp_path / "two.yaml").write_text(PLAYBOOK.replace("repeats: 5", "repeats: 0"))
    (tmp_path / "good.yaml").write_text(IMAGE)
    said = dlperf(tmp_path, "check", "one.yaml", "good.yaml", "two.yaml")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        "good.yaml: a valid image",
        "one.yaml:4:9: defaults.port: got 0; needed at least 1",
        "two.yaml:6:12: method.repeats: got 0; needed at least 1",
    ]


def test_complaints_are_json_where_that_was_asked_for(tmp_path: Path) -> None:
    """One document on standard output, with the numbers that an editor needs."""
    (tmp_path / "one.yaml").write_text(INVENTORY.replace("port: 22", "prot: 22"))
    (tmp_path / "two.yaml").write_text("name: x\n\tbase: y\n")
    said = dlperf(tmp_path, "check", "--json", "one.yaml", "two.yaml")
    assert said.returncode == 2
    assert json.loads(said.stdout) == {
        "exit_code": 2,
        "errors": [
            {
                "code": "CONFIG",
                "file": "one.yaml",
                "line": 4,
                "column": 3,
                "path": "defaults.prot",
                "message": "unknown key 'prot'; did you mean 'port'?",
                "fix": "correct the file",
                "where": {"file": "one.yaml", "line": 4},
            },
            {
                "code": "CONFIG",
                "file": "two.yaml",
                "line": 2,
                "column": 1,
                "path": "",
                "message": "a tab; needed spaces",
                "fix": "correct the file",
                "where": {"file": "two.yaml", "line": 2},
            },
        ],
    }


@pytest.mark.parametrize(
    "command",
    [
        ("provision", "bad-lab.yaml"),
        ("provision", "--dry-run", "bad-lab.yaml"),
        ("sweep", "bad-pb.yaml", "--inventory", "local"),
        ("sweep", "--dry-run", "bad-pb.yaml", "--inventory", "local"),
        ("sweep", "smoke", "--inventory", "bad-lab.yaml"),
        ("sweep", "smoke", "--inventory", "absent.yaml"),
        ("sweep", "n" * 300),
        ("sweep", "smok"),
    ],
    ids=" ".join,
)
def test_command_on_a_bad_file_touches_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Exit 2 before anything is asked, started or written, the state folder among it."""
    (tmp_path / "bad-lab.yaml").write_text(INVENTORY.replace("port: 22", "port: 0"))
    (tmp_path / "bad-pb.yaml").write_text(PLAYBOOK.replace("repeats: 5", "repeats: 0"))
    said = dlperf(tmp_path, *command)
    assert (said.returncode, said.stdout) == (2, "")
    assert ("needed at least 1" in said.stderr) == any("bad-" in word for word in command)
    assert "Traceback" not in said.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad-lab.yaml", "bad-pb.yaml"]


HAS = "this workload has: data_backend, loss_scale"


@pytest.mark.parametrize(
    ("old", "new", "complaints"),
    [
        ("1x2, 2x2]", "1x2, 3x2]", [("11:25", "3x2 asks for 3 nodes; inventory lab has 2")]),
        (
            "1x2, 2x2]",
            "1x9, 4x8]",
            [
                ("11:20", "1x9 asks for 9 GPUs on node node1; inventory lab lets it use 8"),
                ("11:25", "4x8 asks for 4 nodes; inventory lab has 2"),
            ],
        ),
        (
            "[4, 8]",
            "[4, 8]\n  tensor_parallel: [2]",
            [
                ("11:15", "1x1: 1 ranks cannot be split into tensor 2 x pipeline 1"),
                ("11:15", "1x1: tensor_parallel 2; workload reference_rn50 can only do 1"),
                ("11:20", "1x2: tensor_parallel 2; workload reference_rn50 can only do 1"),
                ("11:25", "2x2: tensor_parallel 2; workload reference_rn50 can only do 1"),
            ],
        ),
        (
            "reference_rn50",
            "ngc_pytorch_rn50",
            [
                ("15:15", f"unknown parameter 'image_size'; {HAS}"),
                ("16:18", f"unknown parameter 'memory_format'; {HAS}"),
            ],
        ),
    ],
    ids=["nodes", "GPUs and nodes", "ranks", "workload"],
)
def test_experiment_that_the_cluster_cannot_run_is_refused(
    tmp_path: Path, old: str, new: str, complaints: list[tuple[str, str]]
) -> None:
    """B17, B18: each placement that cannot be is named in its own place in the playbook."""
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "pb.yaml").write_text(PLAYBOOK.replace(old, new))
    said = dlperf(tmp_path, "sweep", "pb.yaml", "--dry-run", "--inventory", "lab.yaml")
    assert (said.returncode, said.stdout) == (2, "")
    found = [line.split(": ", 2) for line in said.stderr.splitlines()]
    assert [(place.removeprefix("pb.yaml:"), text) for place, _, text in found] == complaints


def test_experiment_that_the_cluster_can_run_is_planned(tmp_path: Path) -> None:
    """The same playbook without its faults: six cases of five repeats, and nothing is written."""
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "pb.yaml").write_text(PLAYBOOK)
    said = dlperf(tmp_path, "sweep", "pb.yaml", "--dry-run", "--inventory", "lab.yaml", "--json")
    assert said.returncode == 0, said.stderr
    assert len(json.loads(said.stdout)["plan"]["trials"]) == 30
    assert not (tmp_path / ".dlperf").exists()


HIDDEN = """workload: reference_rm50
image: reference-rm50
method: {repeats: 5, iterations: 121, window: [120, 20]}
grid:
  placement: [1x1, 0x8]
  precision: [fp23]
  micro_batch_size: [4, 4]
"""
WITHOUT_METHOD = """workload: reference_rn50
image: reference-rm50
grid:
  placement: [0x8, 1x1, 1x1]
  precision: [fp32]
  micro_batch_size: [4]
  tensor_parallel: [2]
params: {image_sise: 64}
"""


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (HIDDEN, ["1:11", "2:8", "3:47", "5:20", "6:15", "7:25"]),
        (WITHOUT_METHOD, ["1:1", "2:8", *["4:15"], *["4:20"] * 2, *["4:25"] * 3, "8:22"]),
        (PLAYBOOK.replace(": 5", ": 0").replace("[20, 120]", "[120, 20]"), ["6:12", "8:11"]),
    ],
    ids=["values", "no method", "method"],
)
def test_one_problem_hides_no_other(tmp_path: Path, text: str, places: list[str]) -> None:
    """Neither a missing key nor a value that readers of YAML differ about; nor is either echoed."""
    (tmp_path / "pb.yaml").write_text(text)
    said = dlperf(tmp_path, "check", "pb.yaml").stderr
    assert [line.split(": ")[0] for line in said.splitlines()] == [
        f"pb.yaml:{place}" for place in places
    ], said


def test_a_placement_of_no_node_says_what_helps(tmp_path: Path) -> None:
    """YAML takes 0x8 for a number to base 16; in quotes it would still be no placement."""
    (tmp_path / "pb.yaml").write_text(PLAYBOOK.replace("1x2", "0x8"))
    said = dlperf(tmp_path, "check", "pb.yaml").stderr
    assert "needed a number to base 10, or nodes x GPUs from 1x1 on" in said
    assert "quote it if it is text, and no placement" in said


NODES = """\
name: lab
defaults: {transport: shh}
nodes:
  - {name: node1, address: 10.0.0.1, port: 0}
  - {name: x, address: 10.0.0.2}
  - {name: node3}
  - {name: node4, address: 10.0.0.4}
  - {name: node4, address: 10.0.0.4}
container: {privileged: true}
"""


def test_a_bad_node_hides_no_other(tmp_path: Path) -> None:
    """Names that repeat are found beside nodes that do not hold, at their places in the file."""
    (tmp_path / "lab.yaml").write_text(NODES)
    said = dlperf(tmp_path, "check", "lab.yaml").stderr
    places = [line.split(": ")[0].removeprefix("lab.yaml:") for line in said.splitlines()]
    assert places == ["2:23", "4:44", "5:12", "6:5", "8:12", "9:25"], said
    assert "'node4' is also the name of nodes[3]" in said
