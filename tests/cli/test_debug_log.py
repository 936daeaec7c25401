"""What the debug log holds of commands on nodes, and what of them it must not hold."""

import logging
import re
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from orchestrator.cli import debug_log
from orchestrator.transports.local import LocalTransport
from tests.console.test_view import in_threads

CANARY = "canary 7f3a\tof'two\"lines\n$(and) more"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The debug log of a state folder, written while a test runs."""
    logger = logging.getLogger(debug_log.NAME)
    before, level, propagates = list(logger.handlers), logger.level, logger.propagate
    debug_log.begin(tmp_path, None)
    yield tmp_path / "debug.log"
    for handler in set(logger.handlers) - set(before):
        handler.close()
        logger.removeHandler(handler)
    logger.setLevel(level)
    logger.propagate = propagates


@pytest.mark.parametrize(
    "words",
    [
        ("env", f"REGISTRY_TOKEN={CANARY}", "true"),
        ("env", f"AWS_SECRET_ACCESS_KEY={CANARY}", f"my_password={CANARY}", "true"),
        ("env", f"HTTP_AUTHORIZATION={CANARY}", f"SESSION_COOKIE={CANARY}", "true"),
        ("echo", "--password", CANARY, "kept"),
        ("echo", f"--registry-token={CANARY}", "kept"),
        ("echo", "-password", CANARY),
        ("sh", "-c", "DB_PASS='canary 7f3a of two' true; echo kept"),
        ("sh", "-c", 'export API_KEY="canary 7f3a of two"; true'),
        ("sh", "-c", "PASSPHRASE=canary\\ 7f3a\\ of\\ two true"),
        ("sh", "-c", "true --token 'canary 7f3a of two'"),
        ("sh", "-c", "curl -V >/dev/null; true Authorization: Bearer canary-7f3a-of-two"),
        ("true", "https://bench:canary%207f3a%20of%20two@example.org/v2/"),
    ],
)
def test_no_part_of_a_secret_is_in_the_debug_log(log: Path, words: tuple[str, ...]) -> None:
    """However it is given, and whatever it holds: blanks, quotes, lines."""
    node = LocalTransport("here")
    assert node.run(words, timeout_s=10).exit_code == 0
    said = log.read_text()
    assert words[0] in said
    for part in ("canary", "7f3a", "two", "lines", "more"):
        assert part not in said, said


def test_what_is_no_secret_is_in_the_debug_log(log: Path) -> None:
    """Names that only sound like one, and what follows a secret, are there to be read."""
    node = LocalTransport("here")
    node.run(("env", "KEYBOARD=us", "TOKEN=canary", "MONKEYS=3", "echo", "kept"), timeout_s=10)
    node.run(("true", "--keep-going", "all", "--keyring", "known"), timeout_s=10)
    said = log.read_text()
    assert "KEYBOARD=us TOKEN=... MONKEYS=3 echo kept: exit 0" in said
    assert "--keep-going all --keyring known: exit 0" in said


def test_the_debug_log_rolls_over_under_many_threads(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both files have whole lines, the newest among them."""
    handlers = logging.getLogger(debug_log.NAME).handlers
    (file,) = (it for it in handlers if isinstance(it, RotatingFileHandler))
    monkeypatch.setattr(file, "maxBytes", 4096)  # else megabytes of lines

    def work() -> None:
        for number in range(100):
            logging.getLogger("dlperf.node").debug("said %d end", number)

    in_threads(work)
    lines = (log.read_text() + log.with_name("debug.log.1").read_text()).splitlines()
    assert all(re.search(r"dlperf.node: said [0-9]+ end$", line) for line in lines)
    assert any(line.endswith("said 99 end") for line in lines)
