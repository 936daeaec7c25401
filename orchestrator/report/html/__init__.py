"""report.html: the whole report in one file that asks nobody for anything.

``page`` puts its sections together: a new one is a line in its ``_sections``. ``tables``,
``dlperf_tables``, ``machines`` and ``evidence`` make their parts, ``style`` says how it looks.
"""
