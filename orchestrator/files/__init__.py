"""Reading files.

``yaml_reader`` reads YAML strictly, with the line and column of each value (``source``,
``scalars``); ``shipped`` finds what comes with the package, ``downloads`` stores files by sha256.
"""
