"""bundle: images and downloads as files, for nodes that no registry and no mirror reaches."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator import errors, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import IMAGES, Inventory
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites, user_files
from orchestrator.model.image import BUNDLE_FILE, Bundle
from orchestrator.provisioning import materials
from orchestrator.state.files import now, write


@command("bundle", "bundle mine /media/stick/mine")
def bundle(
    face: Face,
    inventory: Inventory,
    folder: Annotated[Path, typer.Argument(help="Where the bundle is written.")],
    image: Annotated[
        list[str] | None,
        typer.Option(help="Default: all that are provisioned.", autocompletion=IMAGES),
    ] = None,
) -> int:
    store, voice = face.store, face.voice
    cluster, path = user_files.cluster(inventory)
    site = sites.of(store, cluster)
    prepared = site.images if site else {}
    missing = [name for name in image or () if name not in prepared]
    if missing or not prepared:
        raise errors.UnfitError(
            f"prepared images: {', '.join(prepared) or 'none'};"
            f" needed {', '.join(missing) or 'one at least'}",
            code="IMAGE-NOT-PROVISIONED",
            fix=f"dlperf-orch provision {inventory} --lock",
        )
    records = [prepared[name] for name in image or prepared]
    lock = materials.lock(path)
    kept = Downloads(store.root / "downloads", voice.working)
    with Fleet.of(cluster) as fleet:
        parts = [materials.bundle_image(fleet, record, folder, voice) for record in records]
    # A base's archive is not among them: its layers are in the image that was built from it.
    urls = dict.fromkeys(
        url for record in records for url in user_files.image(record.name)[0].parts
    )
    files = [materials.bundle_download(kept, folder, url, lock.downloads.get(url)) for url in urls]
    made = Bundle(version=1, created=now(), images=tuple(parts), downloads=tuple(files))
    write(folder / BUNDLE_FILE, made.text().encode())
    size = sum(part.size for part in (*parts, *files))
    voice.result(
        f"{words.count(len(parts), 'image')} and {words.count(len(files), 'download')},"
        f" {words.size(size)}, in {folder}"
    )
    return voice.finish({"folder": str(folder), "bundle": made.model_dump(mode="json")})
