"""Errors of inventories, playbooks, images and locks: the place and the words of each."""

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.documents import Document
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image, LockFile

ZEROS = f"sha256:{'0' * 64}"
INVENTORY = """\
name: testers
nodes:
  - {name: n1, address: 10.0.0.1, port: 22}
  - {name: n2, address: 10.0.0.2}
"""
OF_INVENTORIES = [
    *(("name: n1", f"name: {name}") for name in ("x", "n" * 64, '"n1\\n"', "../etc", "a;reboot")),
    ("name: n1", "name: n\N{CYRILLIC SMALL LETTER O}de"),
    *(
        ("10.0.0.1,", f"{address},")
        for address in (
            *("-oProxyCommand=x", "10.0.0.256", "10.0.1", "a b", "''", "gpu01.lab.", "gpu_01"),
            *("b\u00fccher.example", "'fe80::1'", "'fe80::1%eth0'", "'[fd00::1]'"),
        )
    ),
    *(
        ("port: 22", f"jump: '{jump}'")
        for jump in ("a,b", "b:0", "[fd00::9", "u@", "fd00::9:x", "1.2.3", "b:99999")
    ),
    *(("port: 22", f"port: {port}") for port in ("65536", "'22'", "true")),
    ("port: 22", "identity: /keys/../id"),
    ("port: 22", "identity: /keys/$(id)"),
    ("port: 22", "folder: ~/dlperf"),
    *(
        ("port: 22", f"data: {{imagenet: {path}}}")
        for path in ("/etc/ssl", "/", "'data/image; rm'")
    ),
    ("port: 22", "host_key: SHA256:short"),
    ("port: 22", "transport: telnet"),
    *(("port: 22", f"gpus: {{count: {count}}}") for count in (0, 65)),
    *(
        ("port: 22", f"gpus: {{count: 8, use: {use}}}")
        for use in ("[]", "[1, 1]", "[-1, 0]", "[0, 64]", "[7, 8]")
    ),
    ("port: 22", "gpu: {count: 8}"),
    ("nodes:", "defaults: {gpus: {count: 1, use: [1]}}\nnodes:"),
    ("nodes:", "container: {privileged: true}\nnodes:"),
    ("nodes:", "defaults: {runtime: pyxis}\nnodes:"),
    ("name: n2", "runtime: process, name: n2"),
    (
        "nodes:\n  - {name: n1",
        "defaults: {runtime: process}\nnodes:\n  - {transport: local, name: n1",
    ),
    ("name: n2", "name: N1"),
    ("10.0.0.2", "10.0.0.1"),
    *(("10.0.0.2", address) for address in ("127.1.2.3", "'::1'", "LocalHost", "'fd00::2'")),
    ("{name: n1, address: 10.0.0.1", "{transport: local, name: n1, address: 127.0.0.1"),
    (
        "10.0.0.1, port: 22}\n  - {name: n2, address: 10.0.0.2",
        "g.lab}\n  - {name: n2, address: G.lab",
    ),
    (
        "10.0.0.1, port: 22}\n  - {name: n2, address: 10.0.0.2",
        "fd00::1}\n  - {name: n2, address: 'FD00:0:0:0:0:0:0:1'",
    ),
    (
        "10.0.0.2}",
        "'fd00::2'}\n  - {name: n3, address: 'fd00::3'}\n  - {name: n4, address: gpu4.lab}",
    ),
    (
        "22}\n  - {name: n2, address: 10.0.0.2",
        "22, gpus: {count: 2, use: [5]}}\n  - {name: N1, address: 10.0.0.1",
    ),
    (
        "nodes:",
        "defaults: {hcas: [{name: mlx5_0, rate_gbps: 400}], roce: {gid_index: 3}}\nnodes:",
    ),
    ("port: 22", "roce: {gid_index: 3}"),
    (INVENTORY, "name: empty\n"),
    (INVENTORY, "name: empty\nnodes: []\n"),
]
QUEUE = """\
name: queue
scheduler: slurm
slurm: {partition: gpu, time: "04:00:00", nodes: 4}
defaults: {runtime: process}
"""
OF_QUEUES = [
    ("scheduler: slurm\n", ""),
    ('slurm: {partition: gpu, time: "04:00:00", nodes: 4}\n', ""),
    ("04:00:00", "4h"),
    (", nodes: 4", ""),
    *(
        ("nodes: 4}", f"nodes: 4, extra: [{option}]}}")
        for option in ("--time=1", "--array=1-3", "--test-only", "--exclusive, now")
    ),
    ("{runtime: process}", "{runtime: docker}\ncontainer: {privileged: true}"),
    ("{runtime: process}", "{runtime: pyxis}\ncontainer: {shm_size: 1g}"),
    ("{runtime: process}", "{runtime: apptainer}\nregistry: {mirror: m.example, user: bob}"),
    ("{runtime: process}", "{runtime: process, user: bob}"),
    ("defaults:", "nodes: [{name: n1, address: n1}]\ndefaults:"),
]
PLAYBOOK = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 5, iterations: 121, window: [20, 120]}
grid: {placement: [1x1], precision: [fp32], micro_batch_size: [128]}
"""
CASES = "cases: [{placement: 1x1, precision: fp32, micro_batch_size: 128}]\n"
OF_PLAYBOOKS = [
    *(
        ("[20, 120]", f"[{window}]")
        for window in ("0, 100", "-5, 100", "100, 100", "100, 20", "20", "20, 120.5")
    ),
    (", window: [20, 120]", ""),
    ("window", "rule: reported, window"),
    *(("repeats: 5", f"repeats: {count}") for count in ("0", "5.0", "true")),
    ("repeats: 5", "repeats: {min: 3, max: 2, until_interval: 1%}"),
    ("iterations: 121", "iterations: 2"),
    *(("repeats: 5", f"repeats: 5, time_limit_s: {limit}") for limit in ("0", ".nan", "2592001")),
    ("repeats: 5", "repeats: 5, stall_limit_s: -1"),
    ("repeats: 5", "repeats: 5, repeat: 5"),
    *(
        ("[1x1]", f"['{text}']")
        for text in (
            *("0x8", "4x0", "4x", "x8", "4 x 8", "4X8", "04x8", "4x8x2", "-1x8", "٤x٨"),
            *("a 4x8", "100000x1", "1x1000"),
        )
    ),
    ("[1x1]", '["4x8\\n"]'),
    ("[1x1]", "[]"),
    ("[fp32]", "[fp16]"),
    ("[128]", "[0]"),
    ("[128]", "128"),
    ("[128]", "[128], tensor_parallel: [0]"),
    (PLAYBOOK[PLAYBOOK.index("grid") :], ""),
    ("grid", f"{CASES}grid"),
]
IMAGE = """\
name: mine
base: registry.example/base:1
infiniband: mlnx_ofed
ofed: {url: http://files.example/MLNX_OFED.tar, version: 4.9-0.1.7.0, packages: [tk]}
apt: {packages: [git], infiniband: [ibverbs-utils], mirror: "http://mirror.example:8080/ubuntu"}
pip: [numpy==1.18.1]
source:
  {url: https://git.example/it.git, commit: 5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4, path: a/b}
code: /workspace/mine
"""
OF_IMAGES = [
    *(("name: mine", f"name: {name}") for name in ("Mine", "a..b", "x")),
    ("mlnx_ofed\n", "mlnx-ofed\n"),
    (IMAGE[IMAGE.index("ofed: {") : IMAGE.index("apt:")], ""),
    ("http://files.example", "ftp://files.example"),
    ("http://files.example", "http://me:pass@files.example"),
    *(("MLNX_OFED.tar", name) for name in ("MLNX_OFED.tar?x=1", "dir/", "..", "$(id).tar")),
    ("MLNX_OFED.tar", "x" * 500),
    ("4.9-0.1.7.0", "4.9; id"),
    ("4.9-0.1.7.0,", f"4.9-0.1.7.0, sha256: {ZEROS},"),
    *(("[tk]", packages) for packages in ("[tk, -y]", "[tk;id]")),
    *(("[git]", packages) for packages in ("[git=1 2]", "git")),
    ("http://mirror.example", "http://-mirror.example"),
    ("/ubuntu", "/ub untu"),
    *(
        ("numpy==1.18.1", text)
        for text in ("numpy", "numpy>=1", "--index-url=x", "git+https://x.example/y@main")
    ),
    *(("https://git.example", url) for url in ("ssh://git.example", "file:///etc")),
    ("5cc03caa153faab7a2c3b1b5b5d63663f06ce1b4", "5cc03ca"),
    *(("a/b", path) for path in ("/a/b", "../b", "-a", "a b")),
    ("registry.example/base:1", f"registry.example/base:1@{ZEROS}"),
    ("/workspace/mine", "~/mine"),
    ("apt: {", "archive: /tmp/base.tar\napt: {"),
    *(
        ("apt: {", f"wheels: [http://files.example/{name}]\napt: {{")
        for name in ("of.tar", "o$.whl", "o%20.whl")
    ),
    ("apt: {", "wheels:\napt: {"),
    ("apt: {", "left_open: [source]\napt: {"),
]
LOCK = f'{{"version": 1, "images": {{"registry.example/b:1": "{ZEROS}"}}}}'
OF_LOCKS = [
    ('"version": 1, ', ""),
    ('"version": 1', '"version": 2'),
    ('"version": 1', '"version": 1, "version": 1'),
    (ZEROS, "sha256:12"),
    ("registry.example/b:1", "b"),
    ('"images": {"registry.example/b:1"', '"downloads": {"ftp://x/y"'),
]
Judge = Callable[[Document], object]


@pytest.mark.parametrize(
    ("text", "changes", "judge"),
    [
        (INVENTORY, OF_INVENTORIES, user_files.judged_cluster),
        (QUEUE, OF_QUEUES, user_files.judged_cluster),
        (PLAYBOOK, OF_PLAYBOOKS, lambda found: yaml_reader.validated(found, Experiment)),
        (IMAGE, OF_IMAGES, lambda found: yaml_reader.validated(found, Image)),
        (LOCK, OF_LOCKS, lambda found: yaml_reader.validated(found, LockFile)),
    ],
    ids=["inventory", "queue", "playbook", "image", "lock"],
)
def test_every_error_has_its_place_and_says_what_was_needed(
    text: str, changes: list[tuple[str, str]], judge: Judge, snapshot: SnapshotAssertion
) -> None:
    """Each change of a good file is refused; a password in a URL is not shown."""
    judge(yaml_reader.document(text, "it"))
    found = {}
    for old, new in changes:
        assert old in text
        try:
            judge(yaml_reader.document(text.replace(old, new, 1), "it"))
        except errors.ConfigError as error:
            found[f"{old!r} => {new!r}"] = [str(it).removeprefix("it:") for it in error.mistakes]
        else:
            pytest.fail(f"{old} => {new} is accepted")
    assert found == snapshot
    assert "me:pass" not in str(list(found.values()))
