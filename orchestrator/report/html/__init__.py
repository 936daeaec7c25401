"""report.html: the whole report in one file that asks nobody for anything.

``page`` puts its sections together: a new one is a line in its ``_sections``. ``tables`` writes
tables, ``evidence`` the lines of logs, ``style`` says how it looks.
"""
