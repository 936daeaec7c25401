"""The state folder: every file of it is written and read here, under its lock.

``store`` has the folder, its sweeps and site files; ``records`` turns what a sweep keeps into
nouns and back, ``contents`` knows which files are evidence, ``archives`` packs a sweep into one
file. A new record is a noun in ``model/`` and a function here.
"""
