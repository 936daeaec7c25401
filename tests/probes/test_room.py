"""Room for a task's files: the real script here, and what it printed where disks were full."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.probes import room

# On tmpfs with size=1m, with nr_inodes=2, and remounted read-only; Debian 12, coreutils 9.1.
NO_BYTES = """\
/var/own
x                     1024     0      1024       0% /var/own
x              3085512     1 3085511    1% /var/own
dd: error writing '1': No space left on device
"""
NO_INODES = """\
/var/own
x                   102400     0    102400       0% /var/own
x                   2     2     0  100% /var/own
mktemp: failed to create file via template '/var/own/.dlperf-room.XXXXXX': No space left on device
"""
READ_ONLY = NO_INODES.replace("No space left on device", "Read-only file system")
UNKNOWN = "/a\n\n\ndd: error writing '1': No space left on device\n"
# On btrfs with `btrfs qgroup limit 2M`, which makes inodes as it needs them.
QUOTA = """\
/data/quota
-                   409600  8000    324640       3% /data/quota
-                   0     0     0     - /data/quota
dd: error writing '1': Disk quota exceeded
"""


@pytest.mark.parametrize(
    ("printed", "code", "cause", "fix"),
    [
        (NO_BYTES, "DISK-FULL", "No space left on device; 1 MiB and 3085511 inodes", "`du -xah"),
        (NO_INODES, "DISK-FULL", "No space left on device; 100 MiB and 0 inodes", "`du -xah"),
        (READ_ONLY, "WRITE", "Read-only file system", "mend the file system at /var/own"),
        (UNKNOWN, "DISK-FULL", "; unknown space is free", "`du -xah /a |"),
        (QUOTA, "DISK-FULL", "Disk quota exceeded; 317 MiB is free", "quota of its user"),
    ],
)
def test_a_folder_without_room_is_an_error_with_what_is_free(
    printed: str, code: str, cause: str, fix: str
) -> None:
    (found,) = room.parse(printed)
    assert found.code == code
    assert cause in found.cause
    assert printed.splitlines()[0] in found.cause
    assert fix in found.fix


@pytest.mark.parametrize("in_container", [True, False])
def test_a_folder_with_room_is_left_as_it_was(tmp_path: Path, in_container: bool) -> None:
    """Nothing is printed and nothing stays, also where the folder is not made yet."""
    argv = room.argv(str(tmp_path / "not" / "yet"), in_container=in_container)
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert not [*tmp_path.iterdir()]
    assert not [*room.parse(done.stdout)]
