"""The state folder: every file of it is written and read here, under its lock.

``store`` has the folder with its sweeps and site files, ``sweep`` that of one sweep, ``files`` one
file; ``records`` turns what a sweep keeps into nouns and back, ``contents`` knows which files are
evidence, ``archives`` packs a sweep into one file. A new record is a noun in ``model/`` and a
function here.
"""
