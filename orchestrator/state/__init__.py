"""The state folder: every file of it is written and read here, under its lock.

A new record is a noun in ``model/`` and a function here.
"""
