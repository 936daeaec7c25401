"""Answers of nodes that are none: what a login printed instead is shown."""

import subprocess

import pytest

from orchestrator import errors
from orchestrator.inputs import probing
from orchestrator.probes import Probe, host
from orchestrator.transports import Completed


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["/usr/sbin/nologin"],
            "exit status 1, printed 'This account is currently not available.'",
        ),
        (["/bin/false"], "exit status 1, printed nothing"),
        (["sh", "-c", "echo no such shell >&2; exit 3"], "(no such shell)"),
    ],
)
def test_what_an_account_without_a_shell_prints_is_shown(argv: list[str], said: str) -> None:
    """The real programs, whose words are on standard output."""
    done = subprocess.run(argv, capture_output=True)
    probe = Probe("host", host.argv("python3", "/tmp", ()), host.parse)
    with pytest.raises(errors.UnfitError) as caught:
        probing.parse_output(probe, Completed(done.returncode, done.stdout, done.stderr), "node1")
    assert said in str(caught.value)
