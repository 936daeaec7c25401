"""Command lines of containers in steps, word for word."""

from orchestrator.model.plan import Mount
from orchestrator.runtimes.containers_in_steps import apptainer, pyxis

MOUNTS = (Mount("/data/image", "/data", read_only=True), Mount("/w/a1", "/w/a1", read_only=False))


def test_pyxis_is_told_by_options_of_srun() -> None:
    """A path of a squash file begins with a slash; variables are named, srun has their values."""
    assert pyxis("/images/rn50.sqsh", MOUNTS, "/w/a1", {"B": "2", "A": "1"}) == (
        "--container-image=/images/rn50.sqsh",
        "--container-mounts=/data/image:/data:ro,/w/a1:/w/a1",
        "--container-workdir=/w/a1",
        "--container-readonly",
        "--no-container-mount-home",
        "--no-container-entrypoint",
        "--container-env=A,B",
    )
    assert pyxis("/i.sqsh", (), "/w", {})[1] == "--container-workdir=/w"


def test_apptainer_stands_before_the_program() -> None:
    """Nothing of the node comes in but what is named."""
    words = apptainer("/images/rn50.sif", MOUNTS, "/w/a1", {"A": "1 2"}, gpus=True)
    assert words == (
        *("apptainer", "exec", "--cleanenv", "--containall", "--no-home", "--nv"),
        *("--bind", "/data/image:/data:ro", "--bind", "/w/a1:/w/a1:rw", "--pwd", "/w/a1"),
        *("--env", "A=1 2", "/images/rn50.sif"),
    )
    assert "--nv" not in apptainer("/i.sif", (), "/w", {}, gpus=False)
