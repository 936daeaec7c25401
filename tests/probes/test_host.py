"""The host probe: the real script asks this machine, and doctored answers are refused."""

import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from pprint import pformat

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.model.site import HostFacts
from orchestrator.probes import host
from tests.probes.answers import HOST_ANSWER as ANSWER


def test_a_whole_answer_is_read_as_a_person_reads_it(snapshot: SnapshotAssertion) -> None:
    assert pformat(asdict(host.parse(ANSWER)), sort_dicts=False) == snapshot


def asked(folder: Path, *modules: str, python: str = sys.executable) -> HostFacts:
    """Ask this machine by the real script."""
    argv = host.argv(python, str(folder), modules)
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return host.parse(done.stdout)


def limit(kind: int) -> int | None:
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft


def test_this_machine_reports_what_the_system_calls_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPUs are those that a program may use; a proxy is named without its value."""
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy:3128")
    monkeypatch.setenv("OMP_NUM_THREADS", "1000")
    before = time.time()
    facts = asked(tmp_path / "not" / "yet")
    assert before - 1 <= facts.clock_s <= time.time() + 1
    assert facts.load == pytest.approx(os.getloadavg()[0], abs=2.0)
    assert facts.hostname == os.uname().nodename
    assert facts.kernel == f"{platform.system()} {platform.release()}"
    assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    memory = Path("/proc/meminfo").read_text().partition("MemTotal:")[2]
    assert facts.memory_mib == int(memory.split()[0]) // 1024
    assert 1 <= facts.cpus <= len(os.sched_getaffinity(0))
    free_mib = shutil.disk_usage(tmp_path).free >> 20
    assert facts.free_disk_mib == pytest.approx(free_mib, abs=max(256, free_mib // 50))
    memlock = limit(resource.RLIMIT_MEMLOCK)
    assert facts.memlock_kib == (None if memlock is None else memlock // 1024)
    assert facts.open_files == limit(resource.RLIMIT_NOFILE)
    assert set(facts.interfaces) == set(os.listdir("/sys/class/net"))
    assert facts.addresses is not None
    assert "127.0.0.1" in facts.addresses["lo"]
    assert "https_proxy" in facts.proxies
    assert "secret" not in repr(facts)
    assert (facts.missing_modules, facts.torch) == ((), "")


def test_modules_are_looked_for_with_the_programs_own_interpreter(tmp_path: Path) -> None:
    """Missing modules are named in the order in which they were asked for."""
    facts = asked(tmp_path, "no_such_module_a", "pytest", "no_such_module_b")
    assert facts.missing_modules == ("no_such_module_a", "no_such_module_b")
    assert asked(tmp_path, "pytest", python="/no/such/python").missing_modules == ("pytest",)


def test_words_of_a_path_or_module_are_not_executed(tmp_path: Path) -> None:
    facts = asked(tmp_path / "a b'$(touch harm)\"`touch harm`", "x; touch harm")
    assert facts.missing_modules == ("x; touch harm",)
    assert list(tmp_path.rglob("harm")) == []
    assert not Path("harm").exists()


def without(key: str, value: str = "") -> str:
    """Return the answer with another value of a key, or without its lines."""
    lines = [line for line in ANSWER.splitlines() if line.partition(" ")[0] != key]
    return "\n".join([*lines, *([f"{key} {value}"] if value else [])])


NUMBERS = ("cpus", "memory_kib", "free_disk_kib", "load", "clock")


@pytest.mark.parametrize("key", ["hostname", "boot_id", "kernel", *NUMBERS])
def test_an_answer_without_a_fact_that_every_linux_has_is_refused(key: str) -> None:
    for text in (without(key), f"{without(key)}\n{key} ", f"{without(key)}\n{key}"):
        with pytest.raises(errors.LogError, match=f"the node reported no {key}") as raised:
            host.parse(text)
        assert raised.value.code == "HOST-FACTS"


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", ["many", "-1", "1_000", "٤٨", "0x30", "nan", "inf", "1e3"])
def test_a_number_has_ascii_digits_alone(key: str, value: str) -> None:
    with pytest.raises(errors.LogError, match=f"the node's {key} is .*; needed a number") as raised:
        host.parse(without(key, value))
    assert raised.value.code == "HOST-FACTS"


def test_an_answer_of_something_else_is_refused() -> None:
    for text in ("", "Welcome to Ubuntu 16.04.4 LTS\n", ANSWER[: len(ANSWER) // 3]):
        with pytest.raises(errors.LogError, match="the node reported no"):
            host.parse(text)
