"""Check a sweep's folder against itself and against its raw logs.

``chain`` follows the checksums from SHA256SUMS over outcomes and events to raw logs, attempts and
exit files. ``formulas`` derives throughputs from the lines of raw logs that they stand on
(``readings``), and medians, intervals, speedups and efficiencies from throughputs (``intervals``).
Nothing here is shared with the code that made the numbers, so a fault of that code shows.
The verb ``verify`` joins both, measures the sweep again and renders its reports again.
"""
