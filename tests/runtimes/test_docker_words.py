"""What Docker and sudo print, and the codes that it becomes."""

import pytest

from orchestrator.runtimes import _causes
from tests import SAMPLES


@pytest.mark.parametrize(
    ("said", "code"),
    [
        # docker/cli and moby threads, and what was seen on a node without the toolkit.
        ("client version 1.52 is too new. Maximum supported API version is 1.41", "DOCKER-API"),
        (
            'could not select device driver "nvidia" with capabilities: [[gpu]]',
            "GPU-RUNTIME",
        ),
        ("Unknown runtime specified nvidia", "GPU-RUNTIME"),
        (
            "OCI runtime create failed: nvidia-container-cli: initialization error: nvml error:"
            " driver not loaded: unknown",
            "GPU-RUNTIME",
        ),
        (
            "toomanyrequests: You have reached your pull rate limit. You may increase the limit"
            " by authenticating and upgrading",
            "REG-RATELIMIT",
        ),
        ("Get https://nvcr.io/v2/: net/http: TLS handshake timeout", "REG-UNREACHABLE"),
        ("Get https://r/v2/: x509: certificate signed by unknown authority", "REG-TLS"),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "DISK-FULL"),
        ("something new", "OTHERWISE"),
    ],
)
def test_words_of_docker_have_their_code(said: str, code: str) -> None:
    """Each text that was seen in the field gets the code of its cause, and stays whole."""
    error = _causes.refusal(f"{said}\n", "here", "OTHERWISE")
    assert (error.code, error.cause) == (code, said)


def test_sudo_that_wants_a_password_is_a_matter_of_rights() -> None:
    """sudo's own words, and who must be allowed what."""
    error = _causes.silence("sudo: a password is required\n", "here", "a", sudo=True)
    assert (error.code, "sudo -n" in error.fix) == ("DOCKER-PERM", True)
    missing = _causes.silence("sudo: docker: command not found\n", "here", "a", sudo=True)
    assert (missing.code, "install Docker" in missing.fix) == ("DOCKER-MISSING", True)


def test_a_socket_that_is_gone_is_an_engine_to_start() -> None:
    """The client's words since 29 end as a shell's do where there is no such program."""
    error = _causes.silence(
        "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is"
        " correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such"
        " file or directory\n",
        "here",
        "a",
        sudo=False,
    )
    assert (error.code, "systemctl start docker" in error.fix) == ("DOCKER-DOWN", True)
    absent = _causes.silence("env: 'docker': No such file or directory\n", "here", "a", sudo=False)
    assert (absent.code, "install Docker" in absent.fix) == ("DOCKER-MISSING", True)


@pytest.mark.parametrize(
    "said",
    [
        (SAMPLES / "docker" / "podman_4.3.1_dial_stdio_err.txt").read_text(),
        "Cannot connect to the Docker daemon at tcp://10.0.0.9:2375. Is the docker daemon running?",
        'error during connect: Get "http://docker.example.com/v1.24/info": command [ssh -l root --'
        " h docker system dial-stdio] has exited with exit status 255, please make sure the URL is"
        " valid, and Docker 18.09 or later is installed on the remote host",
    ],
)
def test_an_engine_that_is_not_the_nodes_own_is_told(said: str) -> None:
    """Starting Docker would help none of them: podman, and contexts of other machines."""
    error = _causes.silence(said, "here", "a", sudo=False)
    assert (error.code, "podman-docker" in error.fix) == ("DOCKER-FOREIGN", True)


def test_an_engine_that_dies_at_work_is_down() -> None:
    """Also where the docker command says it of a request that it was to carry out."""
    said = (
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker"
        " daemon running?\nSee 'docker run --help'.\n"
    )
    assert _causes.refusal(said, "here", "DOCKER-REFUSED").code == "DOCKER-DOWN"
