"""Nodes of a Slurm allocation: commands run as steps of the job, those of one moment as one."""

import base64
import os
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import STEP_S
from orchestrator.model.slurm import environment
from orchestrator.transports import Completed, Transport
from orchestrator.transports._shell import format_nested
from orchestrator.transports.failures import make_error
from orchestrator.transports.local import LocalTransport
from orchestrator.words import limit

GATHER_S = 0.01  # questions that come within this time become one step
# One task a node; every step may use what other steps use. Its answer says which node it is.
SRUN = ("srun", "--overlap", "--quiet", "--ntasks-per-node=1", "--mem=0", "--cpu-bind=none")
FRAME = """
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
answer timeout -k 2 "$limit" sh >"$folder/out" 2>"$folder/err"
status=$?
base64 -w 512 "$folder/out" | sed "s/^/$SLURMD_NODENAME out /"
base64 -w 512 "$folder/err" | sed "s/^/$SLURMD_NODENAME err /"
echo "$SLURMD_NODENAME status $status"
"""


@dataclass(slots=True)
class _Question:
    node: str
    argv: tuple[str, ...]
    timeout_s: float
    answer: Future[Completed] = field(default_factory=Future)


class Steps:
    """The steps of one job; safe for several threads."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._waiting: list[_Question] = []

    def words(self, nodes: Sequence[str], *more: str, ranked: bool = False) -> tuple[str, ...]:
        """Return the words that start a step with one task on each of these nodes.

        Without a job, as in a dry run on a login node, Slurm chooses the nodes.

        Args:
            ranked: whether tasks are numbered in this order of the nodes. Beside that Slurm refuses
                a number of nodes since 23.11 (``src/common/slurm_opt.c``).
        """
        count = str(len(nodes))
        if not self.job:
            return (*SRUN, "-N", count, "-n", count, *more)
        order = ("--distribution=arbitrary",) if ranked else ("-N", count)
        listed = (*order, "-n", count, "-w", ",".join(nodes))
        return (*SRUN, f"--jobid={self.job}", *listed, *more)

    def ask(self, node: str, argv: tuple[str, ...], timeout_s: float) -> Completed:
        """Run a command on one node; commands that others ask for at the time share its step."""
        question = _Question(node, argv, timeout_s)
        with self._lock:
            first = not self._waiting
            self._waiting.append(question)
        if first:
            time.sleep(GATHER_S)
            self._send()
        return question.answer.result()

    def _send(self) -> None:
        """Start a step for each set of questions with one time limit and distinct nodes."""
        with self._lock:
            questions, self._waiting = self._waiting, []
        steps: defaultdict[tuple[float, int], dict[str, _Question]] = defaultdict(dict)
        asked = Counter[tuple[float, str]]()
        for question in questions:
            same = question.timeout_s, question.node
            steps[question.timeout_s, asked[same]][question.node] = question
            asked[same] += 1
        first, *others = ((limit_s, group) for (limit_s, _), group in steps.items())
        for step in others:
            threading.Thread(target=self._step, args=step, daemon=True).start()
        self._step(*first)

    def _step(self, limit_s: float, group: Mapping[str, _Question]) -> None:
        try:
            argv = {node: question.argv for node, question in group.items()}
            words = self.words(list(group), "--input=all", "--chdir=/", "sh", "-s")
            done = run_step(words, build_script(argv, limit_s).encode(), limit_s)
            answered = parse_answers(argv, done.stdout)
            why = done.stderr.decode(errors="replace").strip()
            for node, question in group.items():
                if node not in answered:
                    question.answer.set_exception(_explain_silence(node, why))
                elif answered[node].exit_code == 124:
                    cause = f"{question.argv[0]} gave no answer in {limit(limit_s)}"
                    question.answer.set_exception(make_error("TIMEOUT", cause, node=node))
                else:
                    question.answer.set_result(answered[node])
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            for node, question in group.items():
                if not question.answer.done():
                    question.answer.set_exception(_explain_silence(node, str(error)))


def run_step(words: Sequence[str], content: bytes, limit_s: float) -> Completed:
    """Run a step to its end, out of reach of Ctrl-C; exit code -1 if it has not ended by itself."""
    try:
        done = subprocess.run(
            words,
            input=content,
            capture_output=True,
            timeout=limit_s + STEP_S,
            check=False,
            env=environment(os.environ),
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        return Completed(-1, error.stdout or b"", f"no end in {limit(limit_s)}".encode())
    except OSError as error:
        return Completed(-1, b"", f"srun cannot be started: {error.strerror}".encode())
    return Completed(done.returncode, done.stdout, done.stderr)


def build_script(argv: Mapping[str, tuple[str, ...]], limit_s: float) -> str:
    """Build the script that each task of a step reads: its node's command, and how to answer."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for node, words in argv.items():
        nodes.setdefault(words, []).append(node)
    cases = "".join(
        f'{"|".join(names)}) answer() {{ {format_nested(words)}"$@"; }} ;;\n'
        for words, names in nodes.items()
    )
    return f"limit={limit_s:g}\ncase $SLURMD_NODENAME in\n{cases}esac\n{FRAME}"


def parse_answers(nodes: Iterable[str], output: bytes) -> dict[str, Completed]:
    """Parse the complete answers in a step's output, by node; nodes' lines may alternate."""
    parts: defaultdict[tuple[str, str], bytearray] = defaultdict(bytearray)
    status: dict[str, int] = {}
    for line in output.splitlines():
        node, _, rest = line.decode(errors="replace").partition(" ")
        kind, _, value = rest.partition(" ")
        if kind in ("out", "err"):
            parts[node, kind] += base64.b64decode(value)
        elif kind == "status" and value.isdecimal():
            status[node] = int(value)
    return {
        node: Completed(status[node], bytes(parts[node, "out"]), bytes(parts[node, "err"]))
        for node in nodes
        if node in status
    }


class StepTransport(LocalTransport):
    """A node of an allocation; files below a shared folder are read and written without a step.

    Args:
        shared: a folder of this machine that the node sees at the same path.
    """

    def __init__(self, node: str, steps: Steps, shared: Path | None = None) -> None:
        super().__init__(node, steps.words([node], "--unbuffered"))
        self._steps, self._shared = steps, shared
        self._here = LocalTransport(node)

    def put(self, content: bytes, path: str) -> None:
        if self._is_shared(path):
            self._here.put(content, path)
        else:
            super().put(content, path)

    def get(self, path: str, offset: int = 0, *, own: bool = False) -> bytes | None:
        if self._is_shared(path):
            return self._here.get(path, offset, own=own)
        return Transport.get(self, path, offset, own=own)

    def _execute(
        self, argv: tuple[str, ...], timeout_s: float, doing: str, content: bytes | None = None
    ) -> Completed:
        if not content:
            return self._steps.ask(self.node, argv, timeout_s)
        done = run_step(self._steps.words([self.node], *argv), content, timeout_s)
        if done.exit_code == -1:
            raise _explain_silence(self.node, f"{doing}: {done.complaint}")
        return done

    def _is_shared(self, path: str) -> bool:
        shared = self._shared
        return shared is not None and Path(os.path.normpath(path)).is_relative_to(shared)


def _explain_silence(node: str, why: str) -> errors.DlperfError:
    words = why.splitlines()[-1] if why else "its step gave no answer"
    return make_error("STEP", f"no step runs there: {words}", node=node)
