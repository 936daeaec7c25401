"""Resolve the options of a sweep to its files, nodes and trials."""

import sys
from collections.abc import Callable
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
from orchestrator.signals import Signals
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Hold the options of ``dlperf-orch sweep``.

    Args:
        cases: globs over placements, trial names and names of cases, with commas; none for all.
        repeats: instead of the playbook's, or of its max; trials are added, never taken from a
            sweep.
        max_fail: trials without a valid outcome after which no further trial is started.
        nodes: names and globs of the nodes to use; None for all.
        strict: trials that the state of their nodes marks do not count.
        detach: return once it is under way; a job of Slurm's once it is submitted.
        requeue: queue a job of Slurm's again when its time is over.
        command: the whole command line, for the sweep's record.
        image: instead of the playbook's own.
        like: the placement of the playbook's cases that ``cases``, one placement that it lacks,
            are like.
    """

    playbook: str
    inventory: str | None
    cases: tuple[str, ...] = ()
    repeats: int | None = None
    new: bool = False
    max_fail: int | None = None
    nodes: str | None = None
    strict: bool = False
    detach: bool = False
    requeue: bool = False
    command: str = ""
    image: str | None = None
    like: str | None = None

    @property
    def not_to_resume(self) -> str:
        """Return the option that the command line must lack to resume what it began, or nothing."""
        return "--new" if self.new and "--new" in self.command.split() else ""


@dataclass(frozen=True, slots=True)
class Requested:
    """Hold what the options resolve to.

    Args:
        cluster: the nodes to use; the recipe has all of them.
        inventory: its file.
        digest: of the whole inventory.
        known: the site as last provisioned; None if that was never done with this inventory.
        edited: True if that was done with another content of the inventory.
        plan: the trials to run.
    """

    options: SweepOptions
    recipe: Recipe
    playbook: user_files.Playbook
    cluster: Cluster
    inventory: Path
    digest: str
    known: Site | None
    edited: bool
    plan: Plan

    def refuse_unprepared(self) -> None:
        """Refuse an image that provisioning has not prepared.

        Raises:
            UnfitError: IMAGE-NOT-PROVISIONED.
        """
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
        """Refuse jobs of Slurm's that are too short for any trial.

        Raises:
            UnfitError: WALLTIME.
        """
        limit_s = self.plan.method.time_limit_s
        shortage = self.cluster.slurm.shortage(limit_s) if self.cluster.slurm else None
        if shortage:
            raise errors.UnfitError(shortage[0], code="WALLTIME", fix=shortage[1])

    def describe_work(self, whole: Plan, valid: int, resting: int) -> str:
        """Return in words how many trials will run, and for how long at most.

        Args:
            whole: every trial of the sweep, requested by this command and those before it.
            valid: requested trials that are valid already.
            resting: those that are not needed.
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
    """Read the files that the options name, and plan the trials; say which cases are left out.

    Raises:
        ConfigError: a file does not hold.
        UsageError: no such file, node or case, or nothing that can be run.
    """
    playbook = user_files.playbook(options.playbook, options.image)
    if options.like:
        experiment = matrix.add_placement(playbook.experiment, options.like, *options.cases)
        playbook = replace(playbook, experiment=experiment)
    own = playbook.experiment.inventory
    whole, inventory = sites.inventory(store, options.inventory, own, voice)
    if options.requeue and whole.slurm is None:
        raise errors.UsageError(
            f"--requeue is of jobs of Slurm's; {whole.name} is reached without Slurm",
            code="USAGE",
            fix="leave it out: after any end the same command goes on",
        )
    cluster = sites.narrow(whole, options.nodes)
    known, digest = sites.of(store, whole), sites.digest(whole)
    edited = known is not None and known.cluster_digest != digest
    if edited:
        known = None  # what was prepared may be for other nodes
    program = program_of(playbook, cluster, known)
    recipe = Recipe(playbook.name, playbook.experiment, playbook.workload, whole, program)
    chosen = _choose_trials(recipe, options)
    user_files.refuse_on(playbook, whole, {trial.case for trial in chosen.trials})
    fitting = tuple(trial for trial in chosen.trials if trial.case.nodes <= len(cluster.nodes))
    nodes = words.count(len(cluster.nodes), "node")
    if all(trial.canary for trial in fitting):
        raise errors.UsageError(
            f"every case of {playbook.name} needs more than {nodes}",
            code="NO-CASE",
            fix="leave out fewer nodes with --nodes",
        )
    if options.nodes:
        user_files.refuse_on(playbook, cluster, {trial.case for trial in fitting})
    wide = (trial.case.placement for trial in chosen.trials if trial not in fitting)
    if too_big := ", ".join(dict.fromkeys(wide)):
        voice.line(f"skipped, since they need more than {nodes}: {too_big}")
    return Requested(
        options=options,
        recipe=recipe,
        playbook=playbook,
        cluster=cluster,
        inventory=inventory,
        digest=digest,
        known=known,
        edited=edited,
        plan=chosen.only(fitting),
    )


def _choose_trials(recipe: Recipe, options: SweepOptions) -> Plan:
    grown = plan.repeated(recipe, options.repeats) if options.repeats else recipe
    trials = len(matrix.cases(recipe.experiment)) * grown.experiment.method.most
    if trials > matrix.MOST_TRIALS:
        raise errors.UsageError(
            f"{trials} trials; needed at most {matrix.MOST_TRIALS}",
            code="TOO-MANY",
            fix="request fewer repeats",
        )
    whole = plan.build(grown)
    trials_of_cases = [trial for trial in whole.trials if not trial.canary]
    patterns = plan.patterns(trials_of_cases, options.cases)
    unfit = [word for word in patterns if not plan.selected(trials_of_cases, (word,))]
    if unfit:
        named = (trial.name_of_case or trial.case.placement for trial in trials_of_cases)
        names = ", ".join(dict.fromkeys(named))
        trial = trials_of_cases[0]
        raise errors.UsageError(
            f"no case matches {', '.join(map(repr, unfit))}; there are {names}",
            code="NO-CASE",
            fix=f"a pattern of these names, of placements such as {trial.case.placement}, or of"
            f" names of trials such as {trial.name}",
        )
    chosen = {trial.name for trial in plan.selected(trials_of_cases, patterns)}
    return whole.only(
        tuple(trial for trial in whole.trials if trial.canary or trial.name in chosen)
    )


def program_of(playbook: user_files.Playbook, cluster: Cluster, site: Site | None) -> Program:
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


@dataclass(frozen=True, slots=True)
class Caller:
    """Give a sweep the console, the signals and the callback of the command that runs it.

    Args:
        begun: called with the sweep each time a gang of it runs.
    """

    voice: Voice
    signals: Signals
    begun: Callable[[Sweep], None] = lambda _sweep: None
