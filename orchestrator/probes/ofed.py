"""OFED's version, from what its tool prints."""

import re

_VERSION = re.compile(r"(?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED)-([0-9][0-9.-]*[0-9]):?")


def version(text: str) -> str | None:
    """The version that ``ofed_info -s`` prints, such as ``4.9-0.1.7.0``; None without one."""
    versions = [match[1] for match in map(_VERSION.fullmatch, text.split()) if match]
    return versions[0] if len(versions) == 1 else None
