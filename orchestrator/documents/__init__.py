"""A YAML document in memory, and how what is wrong with it is told. Pure.

``document`` is a tree with the place of each word, ``misfits`` puts pydantic's errors into words,
``salvage`` judges the rest of a document that does not hold, ``syntax`` explains the errors of the
parser.
"""
