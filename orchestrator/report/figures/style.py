"""How figures look, in light and in dark; series differ in colour, in marker and in dashes."""

_LIGHT = ("#0b5fa5", "#b34700", "#1b7837", "#7b3294", "#7a6000", "#4b5563")
_DARK = ("#6cb6ff", "#ffa657", "#7ee787", "#d2a8ff", "#e3c04b", "#b1bac4")
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "12 5", "4 2")
SERIES = len(_LIGHT)


def _series(colours: tuple[str, ...], background: str) -> str:
    return "\n".join(
        f".fig .s{number}{{stroke:{colour}}}.fig .s{number}.full{{fill:{colour}}}"
        f".fig .s{number}.open{{fill:{background}}}"
        for number, colour in enumerate(colours)
    )


_SHAPES = """\
.fig text{font:13px system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC",sans-serif}
.fig .small{font-size:12px}
.fig .end{text-anchor:end}.fig .mid{text-anchor:middle}
.fig .axis,.fig .grid,.fig .line,.fig .ideal,.fig .bar{fill:none}
.fig .line{stroke-width:2}.fig .thin{stroke-width:1.2}.fig .bar{stroke-width:1.6}
.fig .ideal{stroke-width:1.2;stroke-dasharray:1 4;stroke-linecap:round}
.fig .point{stroke-width:1.6}
.fig .held{stroke-width:1;fill:none}.fig .bad{paint-order:stroke;stroke-width:5}
.fig .strong{font-weight:600}
"""

LIGHT = f"""\
.fig .bg{{fill:#fff}}
.fig text{{fill:#1f2328}}.fig .soft{{fill:#57606a}}
.fig .axis{{stroke:#57606a}}.fig .grid{{stroke:#d8dee4}}
.fig .window{{fill:#dbe9f6}}.fig .edge{{stroke:#0b5fa5}}
.fig .out{{stroke:#b3261e;fill:none}}.fig .bad{{fill:#b3261e;stroke:#fff}}
.fig .held{{stroke:#d9736c}}
{_series(_LIGHT, "#fff")}
"""

DARK = f"""\
.fig .bg{{fill:#0d1117}}
.fig text{{fill:#e6edf3}}.fig .soft{{fill:#9aa4af}}
.fig .axis{{stroke:#9aa4af}}.fig .grid{{stroke:#2d343c}}
.fig .window{{fill:#16304a}}.fig .edge{{stroke:#6cb6ff}}
.fig .out{{stroke:#ff8f88;fill:none}}.fig .bad{{fill:#ff8f88;stroke:#0d1117}}
.fig .held{{stroke:#a8524c}}
{_series(_DARK, "#0d1117")}
"""

DASHED = "".join(
    f".fig .d{number}{{stroke-dasharray:{dash}}}\n" for number, dash in enumerate(DASHES)
)
CSS = f"{_SHAPES}{DASHED}{LIGHT}@media screen and (prefers-color-scheme:dark){{\n{DARK}}}\n"
