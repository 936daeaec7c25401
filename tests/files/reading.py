"""A text, read as a file of ours."""

from pathlib import Path

from orchestrator.files import load


def read(folder: Path, text: str) -> load.Document:
    """The document that ``text`` is, byte for byte."""
    file = folder / "file.yaml"
    file.write_bytes(text.encode())
    return load.read(file)
