"""Policies for repeating calls: after which errors, how often, after which pauses."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from orchestrator import errors

T = TypeVar("T")
# No answer came, and whether anything was done is not known: only calls that may be made twice are
# made again after these.
CONNECTION_LOST = (
    *("SSH-JUMP", "SSH-KILLED", "SSH-LOST", "SSH-NO-BANNER", "SSH-REFUSED", "SSH-RESET"),
    *("SSH-SESSIONS", "SSH-THROTTLED", "SSH-UNREACHABLE", "TIMEOUT", "DOCKER-LOST"),
)


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule for which errors a call is repeated, how often and after which pauses.

    Args:
        tries: by the error's code, how often in all; other errors are not tried again.
        pause_s: before the second try, give or take half of it.
        growth: how many times as long each further pause is.
        within_s: from the first try; none begins later.
    """

    tries: Mapping[str, int]
    pause_s: float
    growth: float
    within_s: float

    def call(self, work: Callable[[], T]) -> T:
        """Call ``work`` until a try succeeds; return its result, or raise the last error."""
        from tenacity import RetryCallState, Retrying, stop_before_delay  # 35 ms: it loads asyncio

        def is_next(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            most = self.tries.get(error.code, 1) if isinstance(error, errors.DlperfError) else 1
            return state.attempt_number < most

        def pause_s(state: RetryCallState) -> float:
            growth = self.growth ** (state.attempt_number - 1)
            return self.pause_s * growth * random.SystemRandom().uniform(0.5, 1.5)

        stop = stop_before_delay(self.within_s)
        return Retrying(retry=is_next, stop=stop, wait=pause_s, reraise=True)(work)


# A machine that is only busy, or whose sshd is being started anew.
CONNECT = Policy({"SSH-THROTTLED": 5, "SSH-REFUSED": 2}, 0.3, 3.0, within_s=60.0)
# What changes nothing on a node, or the same a second time: a piece of a log, whether a port is
# taken, the state of a task, the end of what is left of one.
REPEATABLE = Policy(dict.fromkeys(CONNECTION_LOST, 8), 0.25, 2.0, within_s=30.0)
# A question to an engine: the streams that are kept for the next one may be stale.
ENGINE = Policy({"DOCKER-LOST": 2}, 0.0, 1.0, within_s=60.0)
# An image from a registry: what may pass. One that is not there, or not for us, is not asked for
# again; the pause before the second try is the engine's `Patience`.
PULL = Policy(
    {"REG-RATELIMIT": 3, "REG-5XX": 3, "REG-CUT": 3, "REG-DIGEST": 2, "REG-STALL": 2},
    *(5.0, 2.0),
    within_s=3600.0,
)
# A log whose copy has another sha256 than its supervisor recorded.
LOG_COPIES = Policy({"LOG-COPY": 3}, 0.0, 1.0, within_s=3600.0)
# A container that was made, or not: the answer was lost, or an older one had its name.
CONTAINER_MAKES = 3
# Attempts at a trial beside the first, by why the one before was lost; a program that failed, or
# whose log is wrong, is not run again.
ATTEMPTS: Mapping[str, int] = {
    **{"LOST": 2, "KILLED": 2, "STALLED": 1, "DEADLINE": 1, "PORT-BUSY": 3, "START": 2},
    **{"UNREACHABLE": 2, "REBOOTED": 2, "NODE-DOWN": 2, "LOG-COPY": 2, "GPU-DETACHED": 2},
    **{"DOCKER-RESTARTED": 2, "DOCKER-DOWN": 2, "DOCKER-HUNG": 2, "PREEMPTED": 1},
}
