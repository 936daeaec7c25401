"""Command lines of containers within a step of Slurm's: pyxis' options of srun, and apptainer's.

No sweep uses them yet; what they say is tested word for word, and neither was run.
"""

from collections.abc import Mapping, Sequence

from orchestrator.model.plan import Mount


def pyxis(
    image: str, mounts: Sequence[Mount], folder: str, env: Mapping[str, str]
) -> tuple[str, ...]:
    """Options of srun that put a step's tasks into containers.

    Args:
        image: a squash file, by its absolute path; any other word would be taken for a name in a
            registry.
        folder: where tasks begin.
        env: variables that count more than those of the image.

    Source: pyxis 0.24.0, README.md.
    """
    given = (f"--container-env={','.join(sorted(env))}",) if env else ()
    return (
        f"--container-image={image}",
        *((f"--container-mounts={','.join(map(_pyxis_mount, mounts))}",) if mounts else ()),
        f"--container-workdir={folder}",
        "--container-readonly",
        "--no-container-mount-home",
        "--no-container-entrypoint",
        *given,
    )


def apptainer(
    image: str, mounts: Sequence[Mount], folder: str, env: Mapping[str, str], gpus: bool
) -> tuple[str, ...]:
    """The words before a program's that run it in a container.

    Source: apptainer 1.3, `apptainer exec --help`.
    """
    binds = (word for mount in mounts for word in ("--bind", _apptainer_mount(mount)))
    variables = (word for name in sorted(env) for word in ("--env", f"{name}={env[name]}"))
    return (
        *("apptainer", "exec", "--cleanenv", "--containall", "--no-home"),
        *(("--nv",) if gpus else ()),
        *binds,
        *("--pwd", folder),
        *variables,
        image,
    )


def _pyxis_mount(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}"


def _apptainer_mount(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}:{'ro' if mount.read_only else 'rw'}"
