"""What observers wrote beside trials, for tests of figures and pages: rows as nvidia-smi prints."""

from collections.abc import Sequence

from orchestrator.model.telemetry import Course
from orchestrator.telemetry.course import course
from orchestrator.telemetry.read import telemetry

WENT_S = 1795419075.0
_HEAD = (
    "timestamp, index, clocks.current.sm [MHz], power.draw [W], temperature.gpu,"
    " utilization.gpu [%], clocks_event_reasons.active"
)


def watched(node: str, seconds: int, hot: Sequence[int] = (), gpus: int = 8) -> Course:
    """A node of V100, a row a second of each GPU; GPU 0 is too hot in the seconds ``hot``."""
    rows = [_HEAD]
    for second in range(1, seconds + 1):
        stamp = f"2026/11/23 07:{31 + (15 + second) // 60:02}:{(15 + second) % 60:02}.120"
        for gpu in range(gpus):
            warm = min(1.0, second / 12)
            busy = 0 if second < 5 else 97 + (second + gpu) % 4
            held = second in hot and gpu == 0
            clock, reasons = (1200, 0x20) if held else (1530 - 7 * (gpu % 2), 0x4)
            heat = 87 if held else 38 + 23 * warm + gpu % 3
            power = (45 + 245 * warm + gpu) * (0.7 if held else 1)
            rows.append(
                f"{stamp}, {gpu}, {clock}, {power:.2f}, {heat:.0f}, {busy}, {reasons:#018x}"
            )
    return _course(node, _hosts(seconds), "\n".join(rows if gpus else []) + "\n")


def _hosts(seconds: int) -> str:
    """Moments of the node: 12 processors in use of 40, memory that is filled."""
    lines = [f"node,1,{WENT_S:.2f},1000.00,40,100"]
    for second in range(seconds + 1):
        busy, available = 1200 * second, 250_000_000 - 900_000 * min(second, 20)
        times = f"{busy},0,0,500000,0,0,0,0"
        lines.append(
            f"host,{1000 + second:.2f},{times},,,,{4 + second / 10:.2f},{available},0,0,0,0"
        )
    return "\n".join(lines) + "\n"


def _course(node: str, state: str, gpus: str) -> Course:
    seen = telemetry(node, state.encode(), gpus.encode())
    assert seen is not None
    found = course(seen, WENT_S, (8.0, seen.hosts[-1].at_s - WENT_S - 3.0))
    assert found is not None
    return found
