"""Inventories, playbooks and images: found, read and validated."""

import contextlib
import hashlib
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator import errors, words, workloads
from orchestrator.disk import walk
from orchestrator.documents import Document, expand_ranges
from orchestrator.files import shipped, yaml_reader
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster, inventory_conflicts
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image, Program
from orchestrator.model.text import Conflict, is_name
from orchestrator.planning import bind, environment, matrix, plan
from orchestrator.planning.plan import Recipe
from orchestrator.schedulers import slurm_queue
from orchestrator.workloads import Workload


@dataclass(frozen=True, slots=True)
class Playbook:
    """A valid playbook with the workload and image that it names."""

    name: str
    document: Document
    experiment: Experiment
    workload: Workload
    image: Image
    image_folder: Path


def cluster(name: str) -> tuple[Cluster, Path]:
    """Return the inventory of that name or path, validated, and its file."""
    path = _find("inventory", name)
    return slurm_queue.give_nodes(judged_cluster(yaml_reader.read(path))), path


def judged_cluster(document: Document) -> Cluster:
    """Return the inventory in a document."""
    document = expand_ranges(document)
    found = yaml_reader.validated(document, Cluster)
    wrong_env = environment.refused(found.env)
    refuse(document, (*inventory_conflicts(found), *wrong_env, *_list_open_keys(found)))
    return found


def _list_open_keys(inventory: Cluster) -> Iterator[Conflict]:
    """Yield private SSH keys that other users may read; ssh itself refuses public ones."""
    keys: dict[tuple[str | int, ...], str | None] = {
        ("nodes", index, "identity"): node.identity for index, node in enumerate(inventory.nodes)
    }
    for path, identity in {("defaults", "identity"): inventory.defaults.identity, **keys}.items():
        try:
            mode = Path(identity).expanduser().stat().st_mode if identity else 0
        except (OSError, RuntimeError):  # not on this machine, or no home; ssh will say it
            continue
        if mode & 0o077 and not str(identity).endswith(".pub"):
            seen = f"others may use the key {identity} (mode {stat.S_IMODE(mode):04o})"
            yield Conflict(path, f"{seen}; needed chmod 600")


def playbook(name: str, image: str | None = None) -> Playbook:
    """Return the playbook of that name or path, validated as far as that needs no inventory.

    Args:
        image: instead of its own.
    """
    path = _find("playbooks", name)
    return judged_playbook(yaml_reader.read(path), path.stem, image)


def judged_playbook(document: Document, name: str, other_image: str | None = None) -> Playbook:
    """Return the playbook in a document."""
    experiment = yaml_reader.validated(document, Experiment)
    conflicts: list[Conflict] = []
    if not is_name(name):  # it becomes part of folders, and of names on nodes
        needed = "needed 2 to 63 letters, digits, '_', '.' or '-' before .yaml"
        needed += ", beginning with a letter or digit"
        conflicts.append(Conflict((), f"the file's name is {words.shown(name)}; {needed}"))
    base = experiment.image.partition("@")[0]
    for key, value, choices in (
        ("workload", experiment.workload, workloads.names()),
        # A base, which has slashes, is looked for among all images.
        ("image", None if "/" in base else base, tuple(shipped.names("images"))),
        ("inventory", experiment.inventory, tuple(shipped.names("inventory"))),
    ):
        if value is not None and value not in choices:
            conflicts.append(Conflict((key,), _describe_missing(key, value, choices)))
    workload = None
    try:
        if workload := workloads.find(experiment.workload):
            conflicts += matrix.conflicts(experiment, workload, None)
    except errors.LocalError as error:  # PLUG-IN, which concerns no other file
        conflicts.append(Conflict(("workload",), error.cause))
    refuse(document, conflicts)
    assert workload is not None  # else it is a conflict
    chosen, folder = image(other_image or experiment.image)
    experiment = experiment.model_copy(update={"image": chosen.name})
    refuse(document, _check_image(experiment, workload, chosen))
    return Playbook(name, document, experiment, workload, chosen, folder)


def _check_image(experiment: Experiment, workload: Workload, chosen: Image) -> Iterator[Conflict]:
    """Yield an image without the workload's program, or one for another value of a parameter."""
    name = experiment.workload
    if chosen.workloads and name not in chosen.workloads:
        serving = [other for other, image in _read_images().items() if name in image.workloads]
        if serving:
            text = f"{chosen.name} serves {', '.join(chosen.workloads)}, not {name}"
            yield Conflict(("image",), f"{text}; needed {' or '.join(serving)}")
    differing = (
        f"{chosen.name} is for {name}: {value}; {case.placement} has {params[name]}."
        f" needed another image, or `params: {{{name}: {value!r}}}`"
        for case in matrix.cases(experiment)
        for params in [workload.params.model_validate(dict(case.given)).model_dump()]
        for name, value in chosen.params.items()
        if params.get(name, value) != value
    )
    if text := next(differing, ""):
        yield Conflict(("image",), text)


def refuse_on(playbook: Playbook, cluster: Cluster, chosen: Collection[Case] | None = None) -> None:
    """Refuse a playbook with cases that the cluster cannot run, as far as the files say.

    Args:
        chosen: the cases that are to run; None for all.
    """
    conflicts = matrix.conflicts(playbook.experiment, playbook.workload, cluster, chosen)
    refuse(playbook.document, conflicts)
    # A case of each placement may have no launcher that starts it, or no program.
    program = Program(str(playbook.image_folder), "python", "")
    recipe = Recipe(playbook.name, playbook.experiment, playbook.workload, cluster, program)
    seats = [node.seat("") for node in cluster.members]
    trials = [trial for trial in plan.build(plan.repeated(recipe, 1)).trials if not trial.canary]
    pairs = zip(matrix.places(recipe.experiment), trials, strict=True)
    running = [pair for pair in pairs if chosen is None or pair[0].case in chosen]
    missing = list[Conflict]()
    for point, trial in {point.case.placement: (point, trial) for point, trial in running}.values():
        try:
            (leader, *_) = bind.first(recipe, trial, seats).tasks
        except errors.UsageError as error:
            text = f"{point.case.placement}: {error.cause}; needed: {error.fix}"
            missing.append(Conflict(point.path, text))
            continue
        script = next((Path(word) for word in leader.argv if word.endswith(".py")), None)
        is_known = script and (script.is_relative_to(program.code) or cluster.members[0].is_here)
        if script and is_known and not cluster.in_containers and not script.exists():
            text = f"there is no {script}, and inventory {cluster.name} runs plain processes"
            needed = "needed the program there, or runtime: docker"
            missing.append(Conflict(("image",), f"{text}; {needed}"))
    refuse(playbook.document, missing)


def judged_image(document: Document) -> Image:
    """Return the image definition in a document."""
    definition = yaml_reader.validated(document, Image)
    installed = workloads.names()
    unknown = (
        Conflict(("workloads", index), _describe_missing("workload", name, installed))
        for index, name in enumerate(definition.workloads)
        if name not in installed
    )
    refuse(document, unknown)
    return definition


def image(choice: str) -> tuple[Image, Path]:
    """Return the image definition of NAME, validated, and its folder; NAME@TAG sets its base's tag.

    A base itself, REGISTRY/REPOSITORY@TAG, means the one image that puts a program of ours into it.
    Images with a ``source`` are left out: a benchmark's code at one commit fits one base.

    Raises:
        UsageError: NO-FILE; or NO-TAG, its base is an archive; or NO-BASE.
    """
    name, _, tag = choice.partition("@")
    if "/" in name:
        fitting = [
            other
            for other, image in _read_images().items()
            if image.source is None and image.base.rpartition(":")[0] == name
        ]
        if len(fitting) != 1:
            raise errors.UsageError(
                f"{len(fitting) or 'no'} images put their program into {name}; needed one",
                code="NO-BASE",
                fix=f"needed NAME@{tag} with one of"
                f" {', '.join(fitting or shipped.names('images'))}",
            )
        (name,) = fitting
    path = _find("images", name)
    definition = judged_image(yaml_reader.read(path))
    if tag and definition.archive is not None:
        raise errors.UsageError(
            f"the base of {name} comes as a file, {definition.archive}; it has no other tag",
            code="NO-TAG",
            fix=f"give the URL of another file in a copy of images/{name}",
        )
    if tag:
        base = f"{definition.base.rpartition(':')[0]}:{tag}"
        definition = definition.model_copy(update={"name": f"{name}@{tag}", "base": base})
    return definition, path.parent.resolve()


def plain_image() -> Image | None:
    """Return the image, here or shipped, whose program also runs as a plain process; if any."""
    return next((image for image in _read_images().values() if image.requires), None)


def _read_images() -> dict[str, Image]:
    """Return all images, here and shipped; unreadable ones are left out."""
    found = {}
    for name, path in shipped.names("images").items():
        with contextlib.suppress(errors.ConfigError):
            found[name] = yaml_reader.validated(yaml_reader.read(path), Image)
    return found


def _describe_missing(kind: str, name: str, choices: tuple[str, ...]) -> str:
    question = words.did_you_mean(name, choices)
    also = f"; {question}" if question else ""
    needed = f"needed one of {', '.join(choices)}" if choices else "there is none at all"
    return f"there is no {kind} {name!r}; {needed}{also}"


def _find(kind: shipped.Kind, name: str) -> Path:
    path = shipped.find(kind, name)
    if path is None:
        choices = shipped.names(kind)
        label = kind.removesuffix("s")
        raise errors.UsageError(
            f"there is no {label} {name!r}; here and shipped are: {', '.join(choices) or 'none'}",
            code="NO-FILE",
            fix=words.did_you_mean(Path(name).stem, choices) or f"give a path to the {label}",
        )
    return path


def refuse(document: Document, conflicts: Iterable[Conflict]) -> None:
    """Raise a ConfigError with all problems of a document, if there are any."""
    mistakes = [document.mistake(conflict.path, conflict.text) for conflict in conflicts]
    if mistakes:
        raise errors.ConfigError(mistakes)


def folder_digest(folder: Path) -> str:
    """Return sha256 over the names and contents of a folder's files, as ``sha256:...``."""
    digest = hashlib.sha256()
    for name, content in folder_files(folder).items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"


def folder_files(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a program's folder, through links, by path within it."""
    paths = (path for path, _, problem in walk(folder, "LOCAL-FILE", outside=True) if not problem)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(paths)
        if "__pycache__" not in path.parts
    }
