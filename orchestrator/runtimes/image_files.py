"""Containers from one image file that all nodes of a Slurm job see, by pyxis or by apptainer.

Both share the node's processes, so a task is watched, ended and swept like one without a container.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orchestrator import errors
from orchestrator.deadlines import PATIENCE
from orchestrator.model.attempt import Attempt
from orchestrator.model.plan import Mount, Task
from orchestrator.runtimes.supervisor import TaskFiles
from orchestrator.transports import Transport

INSIDE = "/dlperf"
"""A second mount of the image's folder in the container; on the node itself there is none."""
# $1: a path that only the container has. srun without pyxis' plugin, or with options that it does
# not heed, would run the program on the node itself.
PROVED = """
[ -e "$1" ] || { echo "there is no $1: this is not the container" >&2; exit 1; }
shift
exec "$@"
"""
# Apptainer takes options from variables (APPTAINER_BIND), hands others on whatever --cleanenv says
# (APPTAINERENV_X), and with --cleanenv sets LANG to C, whatever the image says.
ALONE = 'exec env -i "HOME=$HOME" "PATH=$PATH" "$@"'

# $1: the job; $2...: its steps that run. Pyxis removes a container's files at the end of its step,
# but enroot fails at it where the step was ended while they were being unpacked. The paths of
# enroot are those that a task's step has, which is not given the user's environment.
ENROOT_LEFT = """
job=$1
shift
unset XDG_DATA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
unset ENROOT_DATA_PATH ENROOT_CACHE_PATH ENROOT_RUNTIME_PATH
for name in $(enroot list | grep -xE "pyxis_(${job}_)?$job\\.[0-9]+"); do
    case " $* " in *" $job.${name##*.} "*) continue ;; esac
    enroot remove --force "$name" </dev/null >/dev/null || echo "$name"
done
"""


# Source: pyxis 0.24.0 under Slurm 22.05; tests/samples/srun-pyxis. Where one slurmd serves a
# machine, slurmstepd does not name its node. An indented text is of enroot's log.
_PYXIS = re.compile(r"^slurmstepd(?:-(\S+))?: error: pyxis: +(\S.*)$", re.MULTILINE)
_SEE_LOG = re.compile(
    r"child \d+ |printing enroot log file|couldn't create enroot start|\[INFO\]|failed to "
    r"|container start failed|container exited"
)
_FATAL = re.compile(r"FATAL: +(.*)")  # apptainer 1.4.5, without colours
_EXITED = re.compile(r"^srun: error: ([^][\s]+): task \d+: Exited with exit code", re.MULTILINE)
_ENDED = "received SIG"  # a node whose container was being made when another's failed


@dataclass(frozen=True, slots=True)
class Contained:
    """The image, mounts and GPUs of a task's container.

    Args:
        image: the file, by its absolute path: pyxis takes any other word for a name in a registry.
        folder: the task's own, where it begins.
    """

    image: str
    folder: str
    mounts: Sequence[Mount] = ()
    gpus: bool = False

    @property
    def all_mounts(self) -> tuple[Mount, ...]:
        """All mounts, with the task's own folder and the image's, which contains the program."""
        beside = posixpath.dirname(self.image)
        ours = (Mount(beside, beside, read_only=True), Mount(beside, INSIDE, read_only=True))
        return (*ours, Mount(self.folder, self.folder, read_only=False), *self.mounts)


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """The commands that import an image file and start containers from it.

    Args:
        importing: the command that writes an image into a file: registry, name there, path.
        options: of srun, for a step whose tasks all run in such containers.
        words: what stands before a program on its node, so that it runs in one.
        left: a script that removes what containers of steps left, and prints what stays.
    """

    suffix: str
    importing: Callable[[str, str, str], tuple[str, ...]]
    options: Callable[[Contained], tuple[str, ...]] = lambda _: ()
    words: Callable[[Contained], tuple[str, ...]] = lambda _: ()
    left: str = "true"


def enroot_import(host: str, name: str, path: str) -> tuple[str, ...]:
    """Return enroot's import command; a name without a registry means Docker Hub.

    Source: enroot 4.1.2, doc/cmd/import.md.
    """
    at = "" if host == "docker.io" else f"{host}#"
    return ("enroot", "import", "--output", path, f"docker://{at}{name}")


def pyxis(wanted: Contained) -> tuple[str, ...]:
    """Return options of srun; of the user's environment only login variables are passed in.

    Source: pyxis 0.24.0, README.md; Slurm 22.05, `man srun`.
    """
    listed = ",".join(
        f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}"
        for mount in wanted.all_mounts
    )
    return (
        f"--container-image={wanted.image}",
        f"--container-mounts={listed}",
        f"--container-workdir={wanted.folder}",
        "--container-readonly",
        "--no-container-mount-home",
        "--no-container-entrypoint",
        "--export=HOME,LANG,LC_ALL,LOGNAME,PATH,USER",
    )


def apptainer_pull(host: str, name: str, path: str) -> tuple[str, ...]:
    """Return the pull command. Source: apptainer 1.3, `apptainer pull --help`."""
    return ("apptainer", "pull", path, f"docker://{host}/{name}")


def apptainer(wanted: Contained) -> tuple[str, ...]:
    """Return words that run a program with the node's devices, without its environment or home.

    The program is no member of apptainer's process group: a supervisor signals its own whole one,
    and before 1.4.5 the image's file system is served by a process of that group.

    Source: apptainer 1.1.0 to 1.5.3, cmd/internal/cli/action_flags.go; CHANGELOG.md of 1.4.5.
    """
    binds = (
        f"{mount.source}:{mount.target}:{'ro' if mount.read_only else 'rw'}"
        for mount in wanted.all_mounts
    )
    return (
        *("sh", "-c", ALONE, "sh", "apptainer", "--quiet", "--nocolor", "exec", "--no-home"),
        *(("--nv",) if wanted.gpus else ()),
        *(word for bind in binds for word in ("--bind", bind)),
        *("--pwd", wanted.folder, wanted.image, "setsid"),
    )


WAYS = {
    "pyxis": ImageFiles(".sqsh", enroot_import, options=pyxis, left=ENROOT_LEFT),
    "apptainer": ImageFiles(".sif", apptainer_pull, words=apptainer),
}
"""By the runtime of an inventory."""


def of_task(attempt: Attempt, task: Task) -> Contained:
    return Contained(attempt.image, attempt.folder(task), task.mounts, bool(task.gpus))


def remove_left(
    way: ImageFiles, transport: Transport, job: str, running: Iterable[str], **where: str
) -> None:
    """Remove the files of containers whose steps of a job have ended, on one node.

    Args:
        running: ids of the job's steps that run.
    """
    words = ("sh", "-c", way.left, "sh", job, *running)
    done = transport.run(words, timeout_s=PATIENCE.end_s)
    if stays := done.stdout.decode(errors="replace").split():
        raise errors.LeftoverError(
            f"files of containers {', '.join(stays)} cannot be removed",
            code="LEFTOVER",
            fix=f"enroot remove --force {' '.join(stays)}",
            **where,
        )


def proved(image: str) -> tuple[str, ...]:
    """Return the words put before a program so that it refuses to run outside of the image."""
    return ("sh", "-c", PROVED, "sh", f"{INSIDE}/{posixpath.basename(image)}")


def find_failed_start(said: str) -> tuple[str, str] | None:
    """Return node and cause of the first container that did not start, if pyxis names one.

    Args:
        said: standard error of srun. The node is empty where it names none.
    """
    lines = _PYXIS.findall(said)
    ended = {node for node, text in lines if text.startswith(_ENDED)}
    node = next((name for name, _ in lines if name not in ended), None)
    if node is None:
        return None
    texts = [text for name, text in lines if name == node]
    cause: str = next((text for text in texts if not _SEE_LOG.match(text)), texts[-1])
    return node, cause.removeprefix("[ERROR] ").strip()


def blame(said: str) -> tuple[str, str]:
    """Return the node and the cause that srun's error output names for a failed container.

    Args:
        said: standard error of srun. The node is empty where it names none, or several.
    """
    nodes = _EXITED.findall(said)
    node = nodes[0] if len(nodes) == 1 else ""
    return find_failed_start(said) or (node, first_error(said))


def first_error(said: str) -> str:
    """Return the first error in standard error; its first line if no line is marked as one."""
    if fatal := _FATAL.search(said):
        return fatal[1]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    marked = (line for line in lines if "error:" in line or "unrecognized" in line)
    return next(marked, lines[0] if lines else "no reason given")


def refusal(files: TaskFiles, said: str, task: Task) -> errors.UnfitError | None:
    """Return why an ended step never started a task's container; None if it did.

    srun's exit status is that of a program which failed; only its words tell the two apart.
    """
    if files.supervisor() is not None:
        return None
    found = find_failed_start(said)
    told = files.text("err") if files.has("gone") else ""  # nothing: killed, for another's failure
    if found is None and not told:
        return None
    node, cause = found or ("", first_error(told))
    return errors.UnfitError(
        f"no container started: {cause}",
        code="CONTAINER-START",
        node=node or task.node,
        fix="see that containers start there: `srun --container-image=FILE true`, or"
        " `apptainer exec`",
    )
