"""Resolve the options of a sweep to its files, nodes and trials."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors, words
from orchestrator.console import Voice
from orchestrator.inputs import sites, user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import Program
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site
from orchestrator.planning import matrix, plan
from orchestrator.planning.plan import Recipe
from orchestrator.state.store import Store


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of ``sweep``, also for sweeps that other commands run.

    Args:
        cases: globs over placements, trial names and names of cases, with commas; none for all.
        max_fail: trials without a valid outcome after which no further trial is started.
        command: for the sweep's record.
        image: instead of the playbook's own.
        like: repeat the playbook's cases of this placement in the one that ``cases`` names.
    """

    playbook: str
    inventory: str | None
    cases: tuple[str, ...] = ()
    repeats: int | None = None
    new: bool = False
    max_fail: int | None = None
    nodes: str | None = None
    strict: bool = False
    command: str = ""
    image: str | None = None
    like: str | None = None

    @property
    def not_to_resume(self) -> str:
        """Return the option that the command line must lack to resume what it began, or nothing."""
        return "--new" if self.new and "--new" in self.command.split() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The files, nodes and trials that the options resolve to.

    Args:
        cluster: the nodes to use; the recipe has all of them.
        inventory: its file.
        known: the site as provisioned with this inventory; None if it never was, or only with
            another content.
        edited: True for another content.
        plan: the trials to run.
    """

    options: SweepOptions
    recipe: Recipe
    playbook: user_files.Playbook
    cluster: Cluster
    inventory: Path
    known: Site | None
    edited: bool
    plan: Plan

    def refuse_unprepared(self) -> None:
        """Raise IMAGE-NOT-PROVISIONED for an image that provisioning has not prepared."""
        name = self.playbook.image.name
        if not self.cluster.in_containers or (self.known and name in self.known.images):
            return
        command = f"dlperf-orch provision {self.options.inventory or self.inventory}"
        edited = f"; {self.inventory} was edited after it was provisioned" if self.edited else ""
        listed = name in {user_files.image(it)[0].name for it in self.cluster.images}
        raise errors.UnfitError(
            f"image {name} is not prepared on cluster {self.cluster.name}{edited}",
            code="IMAGE-NOT-PROVISIONED",
            fix=command if listed else f"write it under `images:` of the inventory, and: {command}",
        )

    def refuse_short(self) -> None:
        """Raise WALLTIME for jobs of Slurm's that are too short for any trial."""
        limit_s = self.plan.method.time_limit_s
        shortage = self.cluster.slurm.shortage(limit_s) if self.cluster.slurm else None
        if shortage:
            raise errors.UnfitError(shortage[0], code="WALLTIME", fix=shortage[1])

    def describe_work(self, whole: Plan, valid: int, resting: int) -> str:
        """Return in words how many trials will run, and for how long at most.

        ``whole`` has the trials of earlier commands, too; ``valid`` and ``resting`` (not needed)
        count requested ones.
        """
        trials, count = words.count(len(whole.trials), "trial"), len(self.plan.trials)
        line = trials if count == len(whole.trials) else f"{count} of {trials}"
        line += f", {valid} valid already" + (f", {resting} not needed" if resting else "")
        method, left = self.plan.method, count - valid - resting
        # Where the spread decides on repeats, a case that has settled needs no more of them.
        are_fixed = isinstance(method.repeats, int)
        if not left:
            more = "a larger --repeats adds trials, " if are_fixed else ""
            return f"{line}, nothing left to run: {more}--new starts a new sweep"
        return (
            f"{line}, {'' if are_fixed else 'at most '}{left} to run on"
            f" {words.count(len(self.cluster.members), 'node')}; at most"
            f" {words.duration(left * method.time_limit_s)} by method.time_limit_s, logs of at most"
            f" {max(self.cluster.log_bytes >> 20, 1)} MiB of each task by max_log_size"
        )


def resolve(store: Store, options: SweepOptions, voice: Voice) -> Requested:
    """Read the files that the options name, and plan the trials; say which cases are left out."""
    playbook = user_files.playbook(options.playbook, options.image)
    if options.like:
        experiment = matrix.add_placement(playbook.experiment, options.like, *options.cases)
        playbook = replace(playbook, experiment=experiment)
    own = playbook.experiment.inventory
    whole, inventory = sites.inventory(store, options.inventory, own, voice)
    cluster = sites.narrow(whole, options.nodes)
    known = sites.of(store, whole)
    edited = known is not None and known.cluster_digest != sites.digest(whole)
    if edited:
        known = None  # what was prepared may be for other nodes
    program = _find_program(playbook, cluster, known)
    recipe = Recipe(playbook.name, playbook.experiment, playbook.workload, whole, program)
    built = plan.build(plan.repeated(recipe, options.repeats) if options.repeats else recipe)
    chosen = plan.select(built.trials, options.cases)
    user_files.refuse_on(playbook, whole, {trial.case for trial in chosen})
    fitting = tuple(trial for trial in chosen if trial.case.nodes <= len(cluster.nodes))
    nodes = words.count(len(cluster.nodes), "node")
    if all(trial.canary for trial in fitting):
        raise errors.UsageError(
            f"every case of {playbook.name} needs more than {nodes}",
            code="NO-CASE",
            fix="leave out fewer nodes with --nodes",
        )
    if options.nodes:
        user_files.refuse_on(playbook, cluster, {trial.case for trial in fitting})
    wide = (it.case.placement for it in chosen if it.case.nodes > len(cluster.nodes))
    if too_big := ", ".join(dict.fromkeys(wide)):
        voice.line(f"skipped, since they need more than {nodes}: {too_big}")
    return Requested(
        options=options,
        recipe=recipe,
        playbook=playbook,
        cluster=cluster,
        inventory=inventory,
        known=known,
        edited=edited,
        plan=replace(built, trials=fitting),
    )


def _find_program(playbook: user_files.Playbook, cluster: Cluster, site: Site | None) -> Program:
    """Return the program for plans and provenance; its digest is empty until it is provisioned."""
    if cluster.in_containers:
        record = site.images.get(playbook.image.name) if site else None
        if record is None:
            return Program(playbook.image.code, playbook.image.python, "")
        file = record.tag if cluster.from_files else ""
        return Program(record.code, record.python, record.id, file, record.ids)
    digest = user_files.folder_digest(playbook.image_folder)
    if cluster.shares_files:
        return Program(str(playbook.image_folder), sys.executable, digest)
    folder = cluster.members[0].folder
    return Program(f"{folder}/code/{digest[7:23]}", playbook.image.python, digest)
