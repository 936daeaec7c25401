"""Preparing a data set on all nodes at once: none waits for another, none stops another.

Each is looked at first: how it gets the data set depends on what it has of that and of its sources.
"""

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from orchestrator import errors, nodeset, words
from orchestrator.console import Voice
from orchestrator.datasets import Dataset, Way, contents, look
from orchestrator.datasets.look import Observed
from orchestrator.deadlines import (
    DATA_COMMAND_S,
    DATA_COUNT_S,
    DATA_LOOK_S,
    DATA_SETTLE_S,
    DATA_SILENT_S,
)
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet, Pool, ask_all
from orchestrator.inputs import probing
from orchestrator.model.attempt import Attempt, Limits, TaskEnd
from orchestrator.model.cluster import Cluster
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.plan import Task
from orchestrator.model.site import Finding
from orchestrator.probes.data import LIMIT_S
from orchestrator.runtimes.process import ProcessRuntime
from orchestrator.schedulers import gang

LIMITS = Limits(time_s=7 * 86400, stall_s=7 * 86400, grace_s=10, create_s=60)
MOST_AT_ONCE = 64
MOST_WORDS = 300
MOST_LABEL_BYTES = 64 << 20
SHOW_S = 0.5
State = Literal["prepared", "there", "shared", "refused", "failed", "stopped", "unknown"]

_PROGRESS = re.compile(r"^dlperf progress ([0-9]+) ([0-9]+) [0-9]+$", re.MULTILINE)
_PROBLEM = re.compile(r"^dlperf problem ([A-Z-]+) (.+)$", re.MULTILINE)
DataProgress = tuple[int, int]
"""Steps that are done, and all of them."""


@dataclass(frozen=True, slots=True)
class DataRequest:
    """The data set, nodes and sources that the command line names.

    Args:
        cluster: with the chosen nodes only.
        source: folder of sources on the nodes; None if none is named.
    """

    dataset: Dataset
    cluster: Cluster
    source: str | None


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """The outcome of one node's preparation; ``error`` if something failed."""

    state: State
    message: str
    error: errors.DlperfError | None = None

    @classmethod
    def failed(cls, error: errors.DlperfError) -> "NodeOutcome":
        state: State = "unknown" if isinstance(error, errors.NodeError) else "failed"
        return cls("stopped" if error.code == "STOPPED" else state, error.code, error)


class NodeWork:
    """One node's preparation: looked at, started or found, watched, judged, moved into place.

    ``look`` comes first.

    Args:
        owner: the record of who prepares it, for others who find the work on the node.
        logs: a folder here for the raw logs.
        stopping: whether a signal asked for the end.
    """

    observed: Observed
    way: Way | None = None
    needed_bytes = 0  # of free disk
    findings: tuple[Finding, ...] = ()
    found: tuple[Attempt, Way] | None = None
    progress: DataProgress | None = None
    _labels = b""  # the classes of validation images

    def __init__(
        self,
        fleet: Fleet,
        request: DataRequest,
        node: Node,
        owner: str,
        logs: Path,
        stopping: Callable[[], bool],
    ) -> None:
        self.node, self._name, self._stopping = node, node.name, stopping
        self._dataset, self._source = request.dataset, request.source
        self.path = node.data[self._dataset.name]
        self._log = logs / f"{node.name}.log"
        self._transport = fleet.transports[node.name]
        self._runtime = ProcessRuntime(self._transport, owner)
        # Two nodes of one machine have two.
        self._home = f"{node.folder}/prepare/{self._dataset.name}-{node.name}"

    def look(self) -> bool:
        """Look at the node and choose the way; return True."""
        dataset, source = self._dataset, self._source
        places = {"target": self.path, **({"source": source} if source else {})}
        for place, state in probing.data_states(self._transport, places).items():
            if state == "hung":
                raise errors.UnfitError(
                    f"{places[place]}: no answer in {LIMIT_S} s",
                    code="MOUNT-HUNG",
                    node=self._name,
                    fix="remount the file system; its server may be gone",
                )
        question = look.probe(dataset, self.path, source, self._home)
        self.observed = seen = probing.ask(self._transport, question, DATA_LOOK_S)
        self._partial = f"{seen.real}.partial"
        if seen.target == "there":
            return True
        self.way, self.needed_bytes = look.choose_way(dataset, seen) or (None, 0)
        findings = list(look.findings(dataset, self._name, self.path, seen, self.needed_bytes))
        if self.way is None:
            findings.append(look.unmet(dataset, self._name, source))
        elif self.way.labels:
            findings += self._find_labels()
        self.findings = tuple(findings)
        return True

    @property
    def state(self) -> Literal["there", "ready", "refused"]:
        """Return there (something lies at the path), ready, or refused for its findings."""
        if self.observed.target == "there":
            return "there"
        return "refused" if self.findings else "ready"

    @property
    def summary(self) -> str:
        """Describe in one line what is to be done."""
        if self.state == "there":
            return "is there; nothing is overwritten"
        if self.way is None:
            return "cannot be prepared"
        have_bytes = self.observed.have_bytes
        begun = f", {words.size(have_bytes)} of it begun" if have_bytes else ""
        return f"{self.way.title}; needs {words.size(self.needed_bytes)} of free disk{begun}"

    def find(self) -> bool:
        """Find an attempt of an earlier run that still runs, or ended well while unwatched."""
        number, ways = self.observed.attempt, self._dataset.ways
        path = f"{self._home}/a{number}/way"
        index = (self._transport.get(path, own=True) or b"") if number else b""
        if not index.isdigit() or int(index) >= len(ways):
            return False
        way = ways[int(index)]
        attempt = self._attempt(way, number)
        state = self._runtime.inspect(attempt, attempt.tasks[0])
        well = state.end is not None and (state.end.status, state.end.why) == (0, "exited")
        if state.phase == "running" or (state.phase == "ended" and well):
            self.found = attempt, way
        else:
            self._runtime.remove(attempt, attempt.tasks[0])
        return self.found is not None

    def claim(self, nonce: str) -> str:
        """Create the folder that is filled; return the node that fills it.

        That is another node where several see one file system.

        Args:
            nonce: the same for all nodes of this run.
        """
        way = "as it is"
        if self.found is None and self.way is not None:
            way = str(self._dataset.ways.index(self.way))
        arguments = (self._partial, self._dataset.name, self._name, nonce, way)
        answer = self._shell("begin.sh", arguments)
        if answer.startswith("shared "):
            return answer.removeprefix("shared ").strip()
        if self.found is None and self._labels:
            self._transport.put(self._labels, f"{self._partial}/notes/labels")
        return self._name

    def prepare(self) -> NodeOutcome:
        """Do the work, or resume watching it; afterwards the data set lies at its path."""
        began = time.monotonic()
        prefix = "found at work, " if self.found else ""
        try:
            attempt, way = self.found or self._start()
            end = self._watch(attempt)
            self._runtime.remove(attempt, attempt.tasks[0])
            try:
                self._refuse_bad_end(way, end)
                parts = self._settle()
            finally:
                home = ("rm", "-rf", "--", self._home)
                self._transport.run(home, timeout_s=DATA_COMMAND_S)
        except errors.DlperfError as error:
            error.where.setdefault("node", self._name)
            if self._stopping() and not isinstance(error, errors.NodeError):
                return NodeOutcome("stopped", "ended before it was done")
            return NodeOutcome.failed(error)
        finally:
            self.progress = None
        took = words.duration(time.monotonic() - began)
        return NodeOutcome("prepared", f"{prefix}{parts}, took {took}")

    def _find_labels(self) -> Iterator[Finding]:
        """Take the labels file among the node's sources; yield the finding that there is none."""
        needed = "the class of each validation image"
        if not self.observed.labels:
            seen = f"no {' or '.join(look.LABEL_FILES)} in {self._source}"
            yield found("LABELS", self._name, seen, needed)
            return
        path, text = f"{self._source}/{self.observed.labels}", b""
        while len(text) < MOST_LABEL_BYTES and (piece := self._transport.get(path, len(text))):
            text += piece
        try:
            self._labels = look.parse_labels(text.decode(errors="replace"), path)
        except errors.LogError as error:
            yield found(error.code, self._name, error.cause, needed, error.fix, severity="error")

    def _attempt(self, way: Way, number: int) -> Attempt:
        argv = ("sh", "-c", script(way.script), way.script, self._partial, self._source or "")
        task = Task(self._name, 0, (*argv, *way.words), {}, (), ())
        folders = {self._name: f"{self._home}/a{number}"}
        trial = f"{self._dataset.name}-{self._name}"
        return Attempt("data", trial, number, folders, 0, (task,))

    def _start(self) -> tuple[Attempt, Way]:
        way = self.way
        if way is None:
            raise AssertionError("a node that is ready has a way")
        if self._stopping():
            raise errors.UnfitError("not begun", code="STOPPED", node=self._name)
        attempt = self._attempt(way, self.observed.attempt + 1)
        (task,) = attempt.tasks
        index = str(self._dataset.ways.index(way)).encode()
        self._transport.put(index, f"{attempt.folder(task)}/way")
        try:
            begun = gang.launch(attempt, LIMITS, lambda _: self._runtime, self._stopping)
        except errors.DlperfError:  # else it would wait at its gate, and hold up every sweep
            with contextlib.suppress(errors.DlperfError):
                self._runtime.remove(attempt, task)
            raise
        if not begun:
            self._runtime.remove(attempt, task)
            raise errors.UnfitError(
                f"{way.script} did not come to its start, or ended before it",
                code="START",
                node=self._name,
                fix=f"look at {attempt.folder(task)} there",
            )
        return attempt, way

    def _watch(self, attempt: Attempt) -> TaskEnd:
        """Wait for the end of an attempt, which a signal brings about.

        Raises:
            NodeError: the node is silent; the work goes on there.
            StoreError, LocalError: its log cannot be written here; the work goes on there.
        """
        with on_disk(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._log.write_bytes(b"")

        def take(piece: bytes) -> None:
            with on_disk(self._log), self._log.open("ab") as file:
                file.write(piece)
            self.progress = find_progress(piece.decode(errors="replace")) or self.progress

        work = gang.Gang(attempt, LIMITS, lambda _: self._runtime, lost_s=DATA_SILENT_S)
        (end,) = work.run(take, self._stopping).ends
        if end.why == "unreachable":
            raise errors.NodeError(
                "the node gives no answer any more",
                code="UNREACHABLE",
                node=self._name,
                fix="it keeps running there; the same command finds it once the node answers",
            )
        return end

    def _refuse_bad_end(self, way: Way, end: TaskEnd) -> None:
        if end.why in ("stopped", "lost"):  # by somebody on the node, too
            raise errors.UnfitError("ended before it was done", code="STOPPED", node=self._name)
        text = self._log.read_text(errors="replace")
        script_problem = find_problem(text)
        if (end.status, end.why) == (0, "exited") and not script_problem:
            return
        last = [line for line in text.splitlines() if line and not line.startswith("dlperf ")]
        last_line = last[-1].strip()[:MOST_WORDS] if last else "no message"
        ending = f"{way.script} ended with {end.status} ({end.why}): {last_line}"
        code, message = script_problem or ("DATA-TOOL", ending)
        fix = f"see {self._log}; run the same command to resume"
        raise errors.UnfitError(message, code=code, node=self._name, fix=fix)

    def _settle(self) -> str:
        """Judge what was made, and move it to its path; return the numbers of its files."""
        path = f"{self._partial}/set"
        made = probing.ask(self._transport, contents.probe(self._dataset, path), DATA_COUNT_S)
        for finding in contents.judge(self._dataset, self._name, path, made):
            if finding.severity == "error":
                raise errors.UnfitError(
                    f"{finding.seen}; needed {finding.expected}",
                    code=finding.code,
                    node=self._name,
                    fix="complete the sources, and run the same command again",
                )
        self._shell("settle.sh", (self.observed.real, self._partial))
        return contents.counted(self._dataset, made)

    def _shell(self, name: str, arguments: tuple[str, ...]) -> str:
        argv = ("sh", "-c", script(name), name, *arguments)
        done = self._transport.run(argv, timeout_s=DATA_SETTLE_S)
        if done.exit_code != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise errors.UnfitError(
                lines[-1] if lines else f"{name} ended with {done.exit_code}",
                code="DISK-FULL" if "No space left" in " ".join(lines) else "DATA-TARGET",
                node=self._name,
                fix=f"look at {self._partial} there",
            )
        return done.stdout.decode(errors="replace").strip()


def script(name: str) -> str:
    return resources.files("orchestrator.datasets").joinpath(name).read_text()


def find_progress(text: str) -> DataProgress | None:
    """Parse the last whole line of progress in a piece of a log."""
    matches = _PROGRESS.findall(text)
    return (int(matches[-1][0]), int(matches[-1][1])) if matches else None


def find_problem(text: str) -> tuple[str, str] | None:
    """Return code and message of the first problem that a script reported."""
    match = _PROBLEM.search(text)
    return (match[1], match[2].strip()) if match else None


def prepare_all(
    works: Mapping[str, NodeWork], failures: Sequence[errors.DlperfError], voice: Voice
) -> dict[str, NodeOutcome]:
    """Prepare all nodes at once; return outcomes by node name, silent nodes last."""
    outcomes = {
        name: NodeOutcome("there", "nothing is overwritten")
        for name, work in works.items()
        if work.state == "there"
    }
    found = ask_all([name for name in works if name not in outcomes], lambda it: works[it].find())
    outcomes |= {answer.node: NodeOutcome.failed(answer.error) for answer in found if answer.error}
    for name, work in works.items():
        if name not in outcomes and not work.found and work.findings:
            outcomes[name] = NodeOutcome("refused", work.findings[0].code)
    nonce = secrets.token_hex(8)
    todo = [name for name in works if name not in outcomes]
    # Of nodes with one path a node already at work keeps it.
    claims = ask_all([it for it in todo if works[it].found], lambda it: works[it].claim(nonce))
    claims += ask_all([it for it in todo if not works[it].found], lambda it: works[it].claim(nonce))
    outcomes |= {answer.node: NodeOutcome.failed(answer.error) for answer in claims if answer.error}
    owners = {answer.node: answer.value for answer in claims if answer.value}
    outcomes |= _work({name: works[name] for name, owner in owners.items() if owner == name}, voice)
    for name, owner in owners.items():
        if owner != name:
            well = owner in outcomes and outcomes[owner].state == "prepared"
            state: State = "shared" if well else "failed"
            outcomes[name] = NodeOutcome(state, f"the same place as on {owner}")
    silent = {error.where.get("node", "?"): NodeOutcome.failed(error) for error in failures}
    return {**{name: outcomes[name] for name in works}, **silent}


def _work(works: Mapping[str, NodeWork], voice: Voice) -> dict[str, NodeOutcome]:
    pool = Pool(min(MOST_AT_ONCE, len(works)))
    try:
        submitted = {name: pool.submit(work.prepare) for name, work in works.items()}
        pending = set(submitted.values())
        while pending:
            _, pending = futures.wait(pending, SHOW_S)
            now = [work.progress for work in works.values() if work.progress]
            done, total = (sum(step[at] for step in now) for at in (0, 1))
            progress = f"{done} of {total} done" if total else "beginning"
            voice.working(f"preparing on {nodeset.fold(works)}: {progress}")
        return {name: future.result() for name, future in submitted.items()}
    finally:
        pool.close()
