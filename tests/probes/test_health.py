"""The health probe: the real script over recorded logs, and answers that lack something."""

import subprocess
from pathlib import Path

from orchestrator.model.facts import HealthFacts
from orchestrator.probes import health
from tests import SAMPLES

FOLDER = SAMPLES / "health"


def test_the_script_runs_on_this_machine() -> None:
    for sudo in (False, True):
        argv = health.argv(sudo=sudo)
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        facts = health.parse(done.stdout)
        assert facts.swap_used_mib is not None
        assert done.stderr == ""


def logged(log: Path, folder: Path, *shell: str) -> HealthFacts:
    """Run the script with a stand-in for dmesg that prints this log."""
    dmesg = folder / "dmesg"
    dmesg.write_text(f"#!/bin/sh\nexec cat {log}\n")
    dmesg.chmod(0o755)
    argv = shell or health.argv(sudo=False)
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60)
    return health.parse(done.stdout)


def test_a_long_log_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    """Longer than a program may be given as an argument; a shell may have no printf of its own."""
    log = tmp_path / "log"
    xid = "[    1.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n"
    log.write_text(xid + "[    2.000000] usb 1-1: new device\n" * 10_000)
    assert len(logged(log, tmp_path).xids or ()) == 1
    without = ("bash", "-c", f"enable -n printf\n{health.SCRIPT}", "sh", "")
    assert logged(log, tmp_path, *without).xids is None


def test_errors_of_gpus_and_switches_are_found_in_a_log(tmp_path: Path) -> None:
    """The recorded switch prints Fatal in three of five lines."""
    xids = logged(FOLDER / "gpud_bus_and_switch.txt", tmp_path).xids or ()
    assert [(xid.number, xid.bus_id, xid.of_switch, xid.fatal) for xid in xids] == [
        (79, "0000:91:00", False, None),
        (79, "0000:91:00", False, None),
        (20034, "0000:06:00.0", True, True),
        (20034, "0000:05:00.0", True, True),
        (20034, "0000:07:00.0", True, None),
        (20034, "0000:05:00.0", True, None),
        (20034, "0000:07:00.0", True, True),
    ]


def test_a_flood_of_one_error_hides_no_other(tmp_path: Path) -> None:
    """A program that fails may log a line for each of its threads."""
    log = tmp_path / "log"
    fatal = f"[    1.000000] {(FOLDER / 'gpud_xid_149.txt').read_text().strip()}\n"
    log.write_text(fatal + "[    2.000000] NVRM: Xid (PCI:0000:3b:00): 13, pid=1\n" * 3000)
    xids = logged(log, tmp_path).xids or ()
    assert {(xid.number, xid.fatal) for xid in xids} == {(149, True), (13, None)}
