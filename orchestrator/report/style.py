"""The style sheet of report.html: for screens, light and dark, for phones and for paper."""

CSS = """\
:root{color-scheme:light dark;--ink:#1f2328;--soft:#57606a;--page:#fff;--raised:#f6f8fa;
--rule:#d0d7de;--link:#0b5fa5;--good:#1a7f37;--warn:#8a5a00;--bad:#b3261e}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;--page:#0d1117;
--raised:#161b22;--rule:#30363d;--link:#6cb6ff;--good:#56d364;--warn:#e3b341;--bad:#ff8f88}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0 auto;padding:1.5rem 1.25rem 4rem;max-width:67rem;background:var(--page);
color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI","Noto Sans",
"Noto Sans CJK SC",sans-serif;overflow-wrap:break-word}
h1{text-wrap:balance;font-size:1.9rem;line-height:1.2;margin:0 0 1rem}
h2{font-size:1.35rem;margin:3rem 0 1rem;padding-bottom:.3rem;border-bottom:1px solid var(--rule)}
h3{font-size:1.05rem;margin:2rem 0 .5rem}
a{color:var(--link)}
a:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--link);
outline-offset:2px}
.skip{position:absolute;left:-100rem;top:.5rem;padding:.5rem 1rem;background:var(--page)}
.skip:focus{left:.5rem}
.verdict{margin:.5rem 0;padding:.6rem .9rem;background:var(--raised);border-left:.4rem solid;
font-weight:600}
.complete{border-color:var(--good)}.marked{border-color:var(--warn)}
.incomplete,.empty{border-color:var(--bad)}
dl{margin:1.2rem 0}
dl div{display:grid;grid-template-columns:9rem 1fr;gap:.1rem 1rem;padding:.15rem 0}
dt{color:var(--soft)}
dd{margin:0;grid-column:2;min-width:0}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:1.2rem 0 0;padding:0}
li{margin:.2rem 0}
code,pre{font-family:ui-monospace,"SFMono-Regular",Consolas,"Noto Sans Mono",monospace;
font-size:.875em;overflow-wrap:anywhere}
pre code{display:block;font-size:1em}
pre{margin:.3rem 0 .8rem;padding:.6rem;background:var(--raised);white-space:pre-wrap}
.matrix{overflow-x:auto;white-space:pre}
.wide-content{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;
margin-bottom:1rem}
caption{text-align:left;color:var(--soft);padding:.3rem 0;max-width:calc(100vw - 2rem)}
th,td{padding:.3rem .45rem;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--rule);vertical-align:bottom}
.n{text-align:right}tbody .n,tbody .w{white-space:nowrap}
tbody :is(th,td):not([class]){min-width:7rem;overflow-wrap:anywhere}thead th{word-break:keep-all}
tbody th{font-weight:600}
figure{margin:1.5rem 0 2.5rem}
figcaption{font-weight:600;margin-bottom:.5rem;text-wrap:balance}
.fig{display:block;width:100%;max-width:36rem;height:auto}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:0 2rem}
.pair>*{min-width:0}
@media (max-width:40rem){body{padding:1rem .9rem 3rem}h1{font-size:1.5rem}
dl div{grid-template-columns:1fr}dd{grid-column:1}}
@media print{body{max-width:none;padding:0;font-size:10pt}nav,.skip{display:none}
a{color:inherit;text-decoration:none}h2,h3,figcaption{break-after:avoid}
section>p{break-after:avoid}.wide-content,p,pre,figure,tr{break-inside:avoid}
.wide-content{overflow:visible}
.matrix{white-space:pre-wrap}table{font-size:8pt}th,td{padding:.15rem .3rem}
tbody .w{white-space:normal}tbody :is(th,td):not([class]){min-width:5rem}
.fig{max-width:12cm}}
"""
