"""Good files, and a table of bad ones: what is wrong, where, and what must be said of it."""

from dataclasses import dataclass

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

# Row of the fault catalogue, file, what is replaced in it, by what, and words of the mistake.
# The sign ▶ is not written: it stands where the mistake must point.
ROWS = (
    ("B01", INVENTORY, "port: 22", "▶prot: 22", "unknown key 'prot'; did you mean 'port'?"),
    ("B01", INVENTORY, "gpus: {", "▶gpu: {", "unknown key 'gpu'; did you mean 'gpus'?"),
    ("B01", INVENTORY, "{count: 8", "{count: 8, ▶modle: x", "did you mean 'model'?"),
    ("B01", INVENTORY, "container:", "▶containers:", "did you mean 'container'?"),
    ("B01", INVENTORY, "memlock", "▶memlok", "did you mean 'memlock'?"),
    ("B01", PLAYBOOK, "time_limit_s", "▶time_limit", "did you mean 'time_limit_s'?"),
    ("B01", PLAYBOOK, "device: cuda", "▶devise: cuda", "did you mean 'device'?"),
    ("B01", PLAYBOOK, "device: cuda", "device: ▶gpu", "needed 'cpu' or 'cuda'"),
    ("B01", PLAYBOOK, "image_size: 64", "image_sise: ▶64", "did you mean 'image_size'?"),
    ("B01", PLAYBOOK, "nhwc", "▶nhcw", "needed 'nhwc' or 'nchw'; did you mean 'nhwc'?"),
    ("B01", PLAYBOOK, "[fp32]", "[▶fp23]", "did you mean 'fp32'?"),
    ("B01", IMAGE, "python:", "▶pyhton:", "did you mean 'python'?"),
    ("B02", INVENTORY, "port: 22", "port: 22\n  ▶port: 23", "first in line 4"),
    ("B02", INVENTORY, "{count: 8", "{count: 8, ▶count: 8", "a key for the second time"),
    ("B02", PLAYBOOK, "device: cuda", "device: cuda\n▶'device': cpu", "first in line 4"),
    ("B02", IMAGE, "name: my-image", "name: my-image\n▶name: other", "first in line 1"),
    ("B03", INVENTORY, "port: 22", "port: ▶'22'", "got '22'; needed a valid integer"),
    ("B03", INVENTORY, "port: 22", "port: ▶22.0", "got 22.0; needed a valid integer"),
    ("B03", INVENTORY, "port: 22", "port: ▶true", "got true; needed a valid integer"),
    ("B03", INVENTORY, "privileged: false", "privileged: ▶0", "needed a valid boolean"),
    ("B03", INVENTORY, "name: lab", "name: ▶5", "got 5; needed a valid string"),
    ("B03", INVENTORY, "gpus: {count: 8}", "gpus: ▶8", "needed a mapping"),
    ("B03", INVENTORY, "[{name: mlx5_0, rate_gbps: 100}]", "▶mlx5_0", "needed a list"),
    ("B03", PLAYBOOK, "repeats: 5", "repeats: ▶5.0", "got 5.0; needed a valid integer"),
    ("B03", PLAYBOOK, "iterations: 121", "iterations: ▶'121'", "needed a valid integer"),
    ("B03", PLAYBOOK, "[20, 120]", "▶20", "got 20; needed a list"),
    ("B03", PLAYBOOK, "[20, 120]", "▶[20]", "needed 2 in it"),
    ("B03", PLAYBOOK, "[20, 120]", "[20, ▶120.0]", "needed a valid integer"),
    ("B03", PLAYBOOK, "[1x1, 1x2, 2x2]", "▶2x2", "got '2x2'; needed a list"),
    ("B03", PLAYBOOK, "image_size: 64", "image_size: ▶64.5", "needed a valid integer"),
    ("B03", IMAGE, "[torch]", "▶torch", "got 'torch'; needed a list"),
    ("B04", INVENTORY, "port: 22", "port: ▶010", "got 010, which readers of YAML read differently"),
    ("B04", INVENTORY, "port: 22", "port: ▶22:22", "which readers of YAML read differently"),
    ("B04", INVENTORY, "port: 22", "port: ▶0x16", "or a plain decimal number"),
    ("B04", INVENTORY, "name: lab", "name: ▶no", "got no, which readers of YAML"),
    ("B04", INVENTORY, "name: lab", "name: ▶2020-01-01", "quote it if it is text"),
    ("B04", INVENTORY, "privileged: false", "privileged: ▶off", "needed true, false or"),
    ("B04", PLAYBOOK, "[4, 8]", "[4, ▶yes]", "needed true, false or"),
    ("B04", PLAYBOOK, "iterations: 121", "iterations: ▶on", "needed true, false or"),
    ("B04", PLAYBOOK, "repeats: 5", "repeats: ▶05", "got 05, which"),
    ("B04", PLAYBOOK, "iterations: 121", "iterations: ▶1_000", "got 1_000, which"),
    ("B05", INVENTORY, "{count: 8}", "▶&gpus {count: 8}", "an anchor (&)"),
    ("B05", INVENTORY, "{count: 8}", "▶*gpus", "an alias (*)"),
    ("B05", INVENTORY, "port: 22", "▶<<: {port: 22}", "unknown key '<<'"),
    ("B05", INVENTORY, "user: root", "user: ▶!!str root", "a tag (!)"),
    ("B05", IMAGE, "code: /", "code: ▶!!python/object/new:os.system /", "a tag (!)"),
    ("B08", INVENTORY, "  port: 22", "▶\tport: 22", "needed YAML, indented by spaces"),
    ("B08", INVENTORY, "  port: 22", "   port▶: 22", "mapping values are not allowed"),
    ("B08", INVENTORY, "  port: 22", " ▶port: 22", "did not find expected key"),
    ("B08", INVENTORY, "gpus: {count: 8}", "gpus: ▶{count: 8", "did not find expected ',' or '}'"),
    ("B08", INVENTORY, "name: lab", "name: ▶@lab", "cannot start any token"),
    ("B08", INVENTORY, "name: lab", "name: ▶'lab", "while scanning a quoted scalar"),
    ("B08", PLAYBOOK, "device: cuda", "device: cuda\n▶---", "a second document"),
    ("B08", PLAYBOOK, "[fp32]", "▶- fp32", "sequence entries are not allowed"),
    ("B09", INVENTORY, "name: lab", "name: la▶\x00b", "control character U+0000"),
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
    ("B12", INVENTORY, "/data/image}", "▶/data/../etc}", "without '..'"),
    ("B12", INVENTORY, "/data/image}", "▶/etc/passwd}", "needed a folder that holds data"),
    ("B12", INVENTORY, "/data/image}", "▶/}", "needed a folder that holds data"),
    ("B12", INVENTORY, "/data/image}", "▶data/image}", "begins with '/' or '~/'"),
    ("B12", PLAYBOOK, "image: reference-rn50", "image: ▶../../etc", "needed an image's name"),
    ("B12", IMAGE, "/workspace/mine", "▶/workspace/../etc", "without '..'"),
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
    ("B20", PLAYBOOK, PLAYBOOK, "▶~\n", "got nothing; needed a value"),
    ("B20", IMAGE, IMAGE, "▶[]\n", "got an empty list; needed `key: value` lines"),
    ("B20", IMAGE, IMAGE, "▶{}\n", "cannot tell what this file is"),
    ("B20", INVENTORY, "port: 22", "port:▶", "got nothing; needed a value, or no key at all"),
    ("B20", INVENTORY, "gpus: {count: 8}", "gpus: {count: ▶}", "got nothing"),
    ("B20", PLAYBOOK, "[1x1, 1x2, 2x2]", "▶[]", "got an empty list; needed at least 1 item"),
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
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶0", "got 0; needed greater than 0"),
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶.inf", "or a plain decimal number"),
    ("B21", PLAYBOOK, "limit_s: 600", "limit_s: ▶.nan", "or a plain decimal number"),
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
    ("seed", PLAYBOOK, "[4, 8]", "▶[4, 8, 4]", "got [4, 8, 4]; needed each value once"),
    ("seed", INVENTORY, "privileged: false", "privileged: ▶true", "needed `reason:` beside"),
    ("seed", PLAYBOOK, "workload: reference_rn50\n", "▶", "cannot tell what this file is"),
    ("X18", INVENTORY, "\nnodes:", "\n▶node:", "unknown key 'node'; did you mean 'nodes'?"),
    ("X18", INVENTORY, "\nnodes:", "\n▶Nodes:", "unknown key 'Nodes'; did you mean 'nodes'?"),
    ("seed", IMAGE, "name: my-image\n", "▶", "key 'name' is missing"),
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
