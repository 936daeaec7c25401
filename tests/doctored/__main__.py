"""Judge doctored logs: ``python -m tests.doctored [EVERY]`` prints tables by class and format."""

import sys
from collections import Counter
from collections.abc import Iterable

from tests.doctored.judge import VERDICTS, cases, judge


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """How often each verdict was given, by what is in the rows."""
    counts = Counter(rows)
    names = [*dict.fromkeys(name for name, _ in counts), "all"]
    width = max(map(len, names)) + 2
    lines = ["".join((title.ljust(width), "logs".rjust(6), *(it.rjust(12) for it in VERDICTS)))]
    for name in names:
        of = Counter[str]()
        for (row, verdict), count in counts.items():
            of[verdict] += count if name in (row, "all") else 0
        numbers = (f"{of[verdict] or '-':>12}" for verdict in VERDICTS)
        lines.append("".join((name.ljust(width), f"{of.total():6}", *numbers)))
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print every finding that is wrong, and the tables; exit code 1 with one."""
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    found = [judge(*case) for case in cases(every)]
    wrong = [it for it in found if it.verdict in ("SILENT", "ACCUSED")]
    sys.stdout.writelines(f"{it}\n" for it in wrong)
    sys.stdout.write(table("class", ((it.doctor, it.verdict) for it in found)) + "\n")
    of_format = ((f"{it.base.kind}, {it.base.rule}", it.verdict) for it in found)
    sys.stdout.write(table("format", of_format))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
