"""What observers wrote beside trials, for tests of figures and pages: rows as nvidia-smi prints."""

from collections.abc import Sequence

from orchestrator.model.telemetry import HeldClocks
from orchestrator.telemetry.judge import find_held
from orchestrator.telemetry.read import telemetry

WENT_S = 1795419075.0
_HEAD = (
    "timestamp, index, clocks.current.sm [MHz], power.draw [W], temperature.gpu,"
    " utilization.gpu [%], clocks_event_reasons.active"
)


def throttled(node: str, seconds: int, hot: Sequence[int]) -> HeldClocks:
    """Read telemetry of 8 V100, a row a second each; GPU 0 is too hot in the seconds ``hot``."""
    rows = [_HEAD]
    for second in range(1, seconds + 1):
        stamp = f"2026/11/23 07:{31 + (15 + second) // 60:02}:{(15 + second) % 60:02}.120"
        for gpu in range(8):
            warm = min(1.0, second / 12)
            busy = 0 if second < 5 else 97 + (second + gpu) % 4
            is_hot = second in hot and gpu == 0
            clock, reasons = (1200, 0x20) if is_hot else (1530 - 7 * (gpu % 2), 0x4)
            heat = 87 if is_hot else 38 + 23 * warm + gpu % 3
            power = (45 + 245 * warm + gpu) * (0.7 if is_hot else 1)
            rows.append(
                f"{stamp}, {gpu}, {clock}, {power:.2f}, {heat:.0f}, {busy}, {reasons:#018x}"
            )
    text = "\n".join(rows) + "\n"
    seen = telemetry(node, f"node,1,{WENT_S:.2f},1000.00,40,100\n".encode(), text.encode())
    assert seen is not None
    found = find_held(seen, WENT_S, (8.0, seconds - 3.0))
    assert found is not None
    return found
