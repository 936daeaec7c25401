"""Reading files.

``yaml_reader`` reads YAML strictly, with lines and columns of values (``source``,
``scalars``); ``shipped`` finds what comes with the package, ``downloads`` stores files by sha256.
"""
