"""archive: write a sweep, with the evidence for its numbers, as one file."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator import errors, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import Which
from orchestrator.disk import on_disk
from orchestrator.state import archives, contents

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "--out", "-o", help="The file to write; default: SWEEP-ID.tar.zst here."
    ),
]


@command("archive", "archive smoke --output smoke.tar.zst")
def archive(face: Face, sweep_id: Which = None, output: Output = None) -> int:
    store, voice = face.store, face.voice
    sweep = store.sweep(sweep_id)
    sweep.record()
    target, marks = output or Path(f"{sweep.id}{archives.SUFFIX}"), []
    with sweep.lock():
        if not (sweep.folder / contents.SUMS).is_file():
            marks.append("no SHA256SUMS: `dlperf-orch collect` writes reports and their checksums")
        try:
            for trial, history in sweep.histories().items():
                marks += [
                    f"{trial} a{number} has no outcome: it may still run" for number in history.open
                ]
        except errors.StoreError as error:
            marks.append(error.cause)
        packed = archives.pack(sweep, target)
    left_out = [path for path in packed.left_out if path not in ("lock", contents.SUMS)]
    if left_out:
        marks.append(f"no evidence, and not in the archive: {', '.join(left_out)}")
    for mark in marks:
        voice.line(mark)
    with on_disk(target):
        size = target.stat().st_size
    sha256 = contents.sha256(target)
    voice.result(f"{target}: {words.count(len(packed.files), 'file')}, {words.size(size)}")
    voice.result(f"sha256 {sha256}")
    document = {"sweep": sweep.id, "file": str(target), "bytes": size, "sha256": sha256}
    return voice.finish({**document, "files": packed.files, "marks": marks})
