"""The style of figures, light and dark; series differ in color, marker and dashes."""

_SHAPES = """\
.fig text{font:13px system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC",sans-serif}
.fig .small{font-size:12px}
.fig .end{text-anchor:end}.fig .mid{text-anchor:middle}
.fig path{fill:none}
.fig .line{stroke-width:2}.fig .thin{stroke-width:1.2}.fig .point{stroke-width:1.6}
.fig .bar{stroke-width:10;stroke-opacity:.35}
.fig .ideal{stroke-width:1.2;stroke-dasharray:1 4;stroke-linecap:round}
.fig .bad{paint-order:stroke;stroke-width:5}
.fig .d1{stroke-dasharray:7 3}.fig .d2{stroke-dasharray:2 3}.fig .d3{stroke-dasharray:9 3 2 3}
.fig .d4{stroke-dasharray:12 5}.fig .d5{stroke-dasharray:4 2}
"""
SERIES = 6


def _colors(
    *series: str, background: str, ink: str, soft: str, grid: str, window: str, wrong: str
) -> str:
    shapes = (
        f".fig .bg{{fill:{background}}}.fig text{{fill:{ink}}}.fig text.soft{{fill:{soft}}}\n"
        f".fig .axis{{stroke:{soft}}}.fig .grid{{stroke:{grid}}}.fig .window{{fill:{window}}}\n"
        f".fig .edge{{stroke:{series[0]}}}.fig .out{{stroke:{wrong}}}.fig .held{{fill:{wrong}}}\n"
        f".fig text.bad{{fill:{wrong};stroke:{background}}}\n"
    )
    return shapes + "".join(
        f".fig .s{number}{{stroke:{color}}}.fig .s{number}.full{{fill:{color}}}"
        f".fig .s{number}.open{{fill:{background}}}\n"
        for number, color in enumerate(series)
    )


_LIGHT = _colors(
    *("#0b5fa5", "#b34700", "#1b7837", "#7b3294", "#7a6000", "#4b5563"),
    **{"background": "#fff", "ink": "#1f2328", "soft": "#57606a"},
    **{"grid": "#d8dee4", "window": "#dbe9f6", "wrong": "#b3261e"},
)
_DARK = _colors(
    *("#6cb6ff", "#ffa657", "#7ee787", "#d2a8ff", "#e3c04b", "#b1bac4"),
    **{"background": "#0d1117", "ink": "#e6edf3", "soft": "#9aa4af"},
    **{"grid": "#2d343c", "window": "#16304a", "wrong": "#ff8f88"},
)
CSS = f"{_SHAPES}{_LIGHT}@media screen and (prefers-color-scheme:dark){{\n{_DARK}}}\n"
