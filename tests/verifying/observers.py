"""What observers write beside a trial, in the form of ``tests/samples/telemetry``."""

from dataclasses import dataclass
from datetime import UTC, datetime

HEAD = (
    "timestamp, index, uuid, pstate, clocks.current.sm [MHz], clocks.current.memory [MHz],"
    " power.draw [W], temperature.gpu, utilization.gpu [%], memory.used [MiB],"
    " clocks_event_reasons.active, ecc.errors.uncorrected.volatile.total,"
    " clocks_event_reasons_counters.sw_thermal_slowdown [us]{energy}"
)


@dataclass(frozen=True)
class Seen:
    """What happened on a node from its gate on, once a second.

    Args:
        others: CPUs that others use.
        hot: the moment of which on heat holds clocks down; None for never.
        alien: CPUs that one process uses.
        counter: whether the driver counts energy.
        task: CPUs that the task uses.
        driver: whether GPUs tell anything.
    """

    went_at: float
    seconds: int
    others: float = 0.02
    steal: float = 0.0
    hot: int | None = None
    alien: float = 0.0
    counter: bool = False
    task: float = 6.0
    driver: bool = True

    def state(self) -> str:
        """The file of the node: eight CPUs."""
        lines = [f"node,1,{self.went_at - 2:.9f},1000.00,8,100"]
        for second in range(self.seconds):
            task = int(100 * second * self.task)
            busy = int(100 * second * (self.task + self.others))
            up, steal = 1002 + second, int(100 * second * self.steal * 8)
            load = self.task + second / 100
            lines.append(
                f"host,{up}.00,{busy},0,0,900,0,0,0,{steal},{task},,,{load:.2f},"
                "21973008,0,536941089,0,24348089"
            )
            if self.alien and second % 3 == 0:
                lines.append(f"process,{up}.00,{up + 3}.00,cpu,4711,{self.alien:.2f},backup")
        return "\n".join([*lines, ""])

    def gpus(self) -> str:
        """The file of two GPUs; empty without a driver."""
        if not self.driver:
            return ""
        lines = [HEAD.format(energy=", total_energy_consumption [mJ]" if self.counter else "")]
        for second in range(self.seconds):
            at = datetime.fromtimestamp(self.went_at + second, UTC)
            is_hot = self.hot is not None and second >= self.hot
            for index in range(2):
                slow = is_hot and index == 1
                cells = (
                    f"{at:%Y/%m/%d %H:%M:%S}.{index:03}, {index}, GPU-{index}, P0",
                    f"{1410 if slow else 1980 - second % 3}, 2619, {650 + second % 7}.10",
                    f"{60 + second % 20}, {99 - second % 2}, 70412",
                    f"{0x20 if slow else 0x4:#018x}, 0, {500000 * second if slow else 0}",
                    *([str(650000 * second)] if self.counter else []),
                )
                lines.append(", ".join(cells))
        return "\n".join([*lines, "2020/09/15 cut"])
