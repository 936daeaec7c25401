"""One module a format: the table of what its lines look like, and what only it knows.

A format like one of these takes one module with a ``Format``; nothing is registered.
"""
