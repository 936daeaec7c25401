"""A program's folder: what its digest is of, and what is pushed to nodes."""

from pathlib import Path

from orchestrator.inputs import user_files


def test_code_behind_links_is_pushed_as_its_digest_says(tmp_path: Path) -> None:
    """A folder elsewhere, a file, a loop: the same files with and without links."""
    place, plain = tmp_path / "image", tmp_path / "plain"
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere" / "inner" / "part.py").write_text("1")
    place.mkdir()
    (place / "main.py").symlink_to("../elsewhere/inner/part.py")
    (place / "lib").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (place / "round").symlink_to(".", target_is_directory=True)
    (place / "gone").symlink_to("nowhere")
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "x.pyc").write_text("2")
    found = user_files.folder_files(place)
    assert found == {"lib/inner/part.py": b"1", "main.py": b"1"}
    for name, content in found.items():
        (plain / name).parent.mkdir(parents=True, exist_ok=True)
        (plain / name).write_bytes(content)
    assert user_files.folder_digest(plain) == user_files.folder_digest(place)
