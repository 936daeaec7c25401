"""What is tried again: which errors, how often, and until when."""

from collections.abc import Callable

import pytest

from orchestrator import errors, retries
from orchestrator.deadlines import Patience
from orchestrator.retries import Policy

QUICK = Policy({"SSH-LOST": 3, "SSH-RESET": 2}, 0.001, 2.0, within_s=10.0)


def failing(*codes: str) -> tuple[list[str], Callable[[], str]]:
    """Work that ends with these errors one after another, then well; and the calls it saw."""
    calls: list[str] = []

    def work() -> str:
        calls.append("")
        if len(calls) <= len(codes):
            raise errors.NodeUnreachable("lost", code=codes[len(calls) - 1])
        return "done"

    return calls, work


@pytest.mark.parametrize("codes", [(), ("SSH-LOST",), ("SSH-LOST", "SSH-LOST"), ("SSH-RESET",)])
def test_what_may_pass_is_tried_again(codes: tuple[str, ...]) -> None:
    """As often as the policy has it for that error, and no more often than needed."""
    calls, work = failing(*codes)
    assert QUICK.call(work) == "done"
    assert len(calls) == len(codes) + 1


@pytest.mark.parametrize(
    ("codes", "tries"),
    [
        (("SSH-LOST", "SSH-LOST", "SSH-LOST"), 3),
        (("SSH-RESET", "SSH-RESET"), 2),
        (("SSH-AUTH",), 1),
        (("SSH-LOST", "SSH-RESET"), 2),
    ],
)
def test_what_does_not_pass_is_raised_as_it_is(codes: tuple[str, ...], tries: int) -> None:
    """The last error itself, after as many tries as it is worth."""
    calls, work = failing(*codes)
    with pytest.raises(errors.NodeUnreachable) as raised:
        QUICK.call(work)
    assert raised.value.code == codes[-1]
    assert len(calls) == tries


def test_no_try_begins_after_the_deadline() -> None:
    """However many are left."""
    calls, work = failing("SSH-LOST", "SSH-LOST")
    with pytest.raises(errors.NodeUnreachable):
        Policy({"SSH-LOST": 9}, 5.0, 1.0, within_s=0.5).call(work)
    assert len(calls) == 1


def test_a_fault_of_ours_is_not_tried_again() -> None:
    """Only errors that the policy names are."""
    with pytest.raises(ZeroDivisionError):
        QUICK.call(lambda: 1 // 0)


def test_nothing_that_a_program_did_is_run_again() -> None:
    """Attempts are repeated for what befell the machine, never for a failure or a wrong log."""
    assert not {"PROGRAM-FAILED", "OOM", "TRUNCATED", "INTERRUPTED"} & set(retries.ATTEMPTS)
    assert retries.ATTEMPTS["GPU-DETACHED"] == 2


def test_credentials_and_host_keys_are_never_tried_twice() -> None:
    """A key that is refused again and again locks an account."""
    policies = (retries.CONNECT, retries.REPEATABLE, retries.ENGINE, retries.PULL)
    tried = {code for policy in policies for code in policy.tries}
    assert not [code for code in tried if code.startswith(("SSH-AUTH", "SSH-HOSTKEY", "REG-AUTH"))]


def test_slow_kinds_of_calls_have_more_time_than_a_short_question() -> None:
    """GPU hooks, images of tens of GB and registries take longer than an answer."""
    patience = Patience()
    slow = (patience.create_s, patience.start_s, patience.untag_s, patience.registry_s)
    assert min(slow) >= 6 * patience.answer_s
