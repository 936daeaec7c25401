"""bundle: images and downloads as files, for nodes that no registry and no mirror reaches."""

from pathlib import Path

from orchestrator import errors, words
from orchestrator.console import Voice
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites, user_files
from orchestrator.model.bundle import FILE_NAME, Bundle
from orchestrator.model.site import ImageRecord, Site
from orchestrator.provisioning import bundled_files, materials
from orchestrator.state.files import now, write
from orchestrator.state.store import Store


def bundle(store: Store, inventory: str, folder: Path, names: tuple[str, ...], voice: Voice) -> int:
    """Write provisioned images and their downloads into a folder; exit code.

    Raises:
        UnfitError: IMAGE-NOT-PROVISIONED.
        NodeError, ImageError: a node could not give an image; no bundle.json is written.
    """
    cluster, path = user_files.cluster(inventory)
    site = sites.of(store, cluster)
    records = _find_records(site, names, inventory)
    lock = materials.lock(path)
    kept = Downloads(store.root / "downloads", lambda *_: None)
    with Fleet.of(cluster) as fleet:
        parts = [bundled_files.image(fleet, record, folder, voice) for record in records]
    voice.rested()
    # A base's archive is not among them: its layers are in the image that was built from it.
    urls = dict.fromkeys(
        url for record in records for url in user_files.image(record.name)[0].parts
    )
    files = [bundled_files.download(kept, folder, url, lock.downloads.get(url)) for url in urls]
    made = Bundle(version=1, created=now(), images=tuple(parts), downloads=tuple(files))
    write(folder / FILE_NAME, made.text().encode())
    size = sum(part.size for part in (*parts, *files))
    voice.result(
        f"{words.count(len(parts), 'image')} and {words.count(len(files), 'download')},"
        f" {words.size(size)}, in {folder}"
    )
    return voice.finish({"folder": str(folder), "bundle": made.model_dump(mode="json")})


def _find_records(site: Site | None, names: tuple[str, ...], inventory: str) -> list[ImageRecord]:
    records = site.images if site else {}
    if not records:
        raise errors.UnfitError(
            "no image has been provisioned yet",
            code="IMAGE-NOT-PROVISIONED",
            fix=f"dlperf-orch provision {inventory} --lock",
        )
    missing = [name for name in names if name not in records]
    if missing:
        raise errors.UnfitError(
            f"no image {', '.join(missing)} was prepared; there are {', '.join(records)}",
            code="IMAGE-NOT-PROVISIONED",
            fix=f"dlperf-orch provision {inventory}",
        )
    return [records[name] for name in names or records]
