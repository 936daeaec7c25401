"""A YAML document in memory, and the messages about what is wrong with it. Pure.

``document`` is a tree with the lines and columns of values, ``field_errors`` turns pydantic's
errors into messages.
"""
