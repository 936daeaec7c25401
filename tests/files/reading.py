"""A text, read as a file of ours."""

from pathlib import Path

from orchestrator.documents import Document
from orchestrator.files import yaml_reader


def read(folder: Path, text: str) -> Document:
    """The document that ``text`` is, byte for byte."""
    file = folder / "file.yaml"
    file.write_bytes(text.encode())
    return yaml_reader.read(file)
