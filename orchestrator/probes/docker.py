"""Facts of a node's Docker engine, and of the NVIDIA software beside it."""

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field, ValidationError

from orchestrator.model.facts import Silent
from orchestrator.model.site import DockerFacts, kind_of_silence
from orchestrator.probes.sections import Output, Section, read

INFO, VERSION = "docker.info", "docker.version"
# What the engine says of itself, on one line; then what is beside it, one line a fact, `key value`:
# it reads CDI files, hooks and its configuration on the node. It is asked once: for each `info` it
# starts runc and docker-init, for their versions. In JSON a path with \ & < > is not as it is.
# Where images lie in containerd, that of the system has a root of its own.
SCRIPT = r"""
info=$("$@" info --format '{{json .}}')
status=$?
printf '%s\n' "$info"
case $info in *\"ServerVersion\":*) ;; *)
    own=$("$@" --version 2>/dev/null)
    case $own in podman*) printf '%s\n' "$own" >&2; exit 1 ;; esac ;;
esac
[ "$status" -eq 0 ] || exit "$status"
PATH=$PATH:/usr/local/bin:/usr/bin:/usr/sbin:/sbin
root=
case $info in *\"DockerRootDir\":\"*) root=${info#*\"DockerRootDir\":\"} root=${root%%\"*} ;; esac
case $root in *\\*) root=$("$@" info --format '{{.DockerRootDir}}') ;; esac
case $info in *io.containerd.snapshotter.v1*'"Address":"/run/containerd/containerd.sock"'*)
    root=$(sed -n "/^\[/q; s/^root *= *[\"']\([^\"']*\).*/\1/p" \
        /etc/containerd/config.toml 2>/dev/null)
    root=${root:-/var/lib/containerd}
    echo "root $root" ;;
esac
while [ -n "$root" ] && [ ! -d "$root" ] && [ "$root" != / ]; do root=$(dirname "$root"); done
[ -z "$root" ] || df -Pk "$root" | { read -r _; read -r _ _ _ free _; echo "free_kib $free"; }
printf 'endpoint %s\n' "$("$@" context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null)"
for hook in nvidia-container-runtime-hook nvidia-container-toolkit; do
    ! command -v "$hook" >/dev/null 2>&1 || printf 'hook %s\n' "$hook"
done
printf 'toolkit %s\n' "$(nvidia-ctk --version 2>/dev/null | head -n 1)"
cdi=$(grep -ls 'nvidia\.com/gpu' /etc/cdi/* /var/run/cdi/*)
[ -z "$cdi" ] || echo cdi
config=$(cat /etc/docker/daemon.json 2>/dev/null) && printf 'config read\n%s\n' "$config"
exit 0
"""
_ENDPOINT = re.compile(r"^endpoint ((?!unix:)\w+:\S+)$", re.MULTILINE)
_TOOLKIT = re.compile(r"NVIDIA Container Toolkit CLI version ([0-9]+(?:\.[0-9]+)+)\S*")


class _Info(BaseModel):
    """The keys of ``docker info`` that count here; absent ones are as the engine's zero value."""

    server_version: str = Field("", alias="ServerVersion")
    driver: str = Field("", alias="Driver")
    root_dir: str = Field("", alias="DockerRootDir")
    runtimes: dict[str, object] | None = Field(None, alias="Runtimes")
    cdi_folders: list[str] | None = Field(None, alias="CDISpecDirs")
    logging_driver: str = Field("", alias="LoggingDriver")
    live_restore: bool = Field(False, alias="LiveRestoreEnabled")
    security: list[str] | None = Field(None, alias="SecurityOptions")
    http_proxy: str = Field("", alias="HttpProxy")
    https_proxy: str = Field("", alias="HttpsProxy")
    errors: list[str] | None = Field(None, alias="ServerErrors")


class _Component(BaseModel):
    name: str = Field("", alias="Name")
    version: str = Field("", alias="Version")


class _Server(BaseModel):
    api_version: str = Field("", alias="ApiVersion")
    components: list[_Component] | None = Field(None, alias="Components")


class _Version(BaseModel):
    server: _Server | None = Field(None, alias="Server")


class _Config(BaseModel):
    log_opts: dict[str, str] = Field(default_factory=dict, alias="log-opts")


def sections(*, sudo: bool) -> tuple[Section, ...]:
    """The questions about the engine.

    Args:
        sudo: whether the user reaches the engine through ``sudo -n`` only.
    """
    docker = ("sudo", "-n", "docker") if sudo else ("docker",)
    return (
        Section(INFO, ("sh", "-c", SCRIPT, "sh", *docker)),
        Section(VERSION, (*docker, "version", "--format", "{{json .}}")),
    )


def parse(outputs: Mapping[str, Output]) -> DockerFacts | Silent | None:
    """The facts in both outputs, or the reason there are none; None if they were not asked."""
    if INFO not in outputs:
        return None
    silent = _refusal(outputs[INFO])
    if silent is not None:
        return silent
    said, _, beside = outputs[INFO].out.partition("\n")
    try:
        info = _Info.model_validate_json(said)
        server = _Version.model_validate_json(outputs[VERSION].out).server
    except ValidationError as error:
        return Silent("UNREADABLE", f"{error.title}: {error.errors()[0]['msg']}")
    if not info.server_version or info.errors or server is None or not server.api_version:
        return Silent("DOWN", "; ".join(info.errors or ()) or outputs[VERSION].message)
    if foreign := _foreign(info, server, beside):
        return Silent("FOREIGN", foreign)
    return _facts(info, server, beside)


def _refusal(output: Output) -> Silent | None:
    """Why the engine gave no answer; None if it did."""
    silent = read(output, str)
    if isinstance(silent, Silent):
        return silent
    if output.exit_code == 0:
        return None
    return Silent(kind_of_silence(output.err) or "REFUSED", output.message)


def _foreign(info: _Info, server: _Server, beside: str) -> str:
    """Describe an engine that is not the node's own Docker; empty for one that is.

    Source:
        Docker's manual, "Rootless mode", known limitations: `--net=host` is the network namespace
        of RootlessKit, not that of the node.
    """
    podman = [part.version for part in server.components or () if part.name == "Podman Engine"]
    if podman:
        return f"podman {podman[0]} serves Docker's API"
    endpoint = _ENDPOINT.search(beside)
    if endpoint:
        return f"the docker command reaches {endpoint[1]} (its context, or DOCKER_HOST)"
    if "name=rootless" in (info.security or ()):
        return f"Docker {info.server_version} is rootless: its containers lack the node's network"
    return ""


def _facts(info: _Info, server: _Server, beside: str) -> DockerFacts:
    head, _, config = beside.partition("config read\n")
    lines = [line.partition(" ")[::2] for line in head.splitlines()]
    free_kib = [value for key, value in lines if key == "free_kib" and value.isdecimal()]
    toolkit = [_TOOLKIT.fullmatch(value) for key, value in lines if key == "toolkit"]
    keys = {key for key, _ in lines}
    roots = [value for key, value in lines if key == "root"]
    runc = [part.version for part in server.components or () if part.name == "runc"]
    return DockerFacts(
        server_version=info.server_version,
        api_version=server.api_version,
        runtimes=tuple(sorted(info.runtimes or ())),
        cdi=bool(info.cdi_folders) and "cdi" in keys,
        gpu_hook="hook" in keys,
        toolkit=toolkit[0][1] if toolkit and toolkit[0] else None,
        runc=runc[0] if runc else None,
        storage_driver=info.driver,
        root_dir=roots[0] if roots else info.root_dir,
        free_mib=int(free_kib[0]) // 1024 if free_kib else None,
        logging_driver=info.logging_driver,
        log_opts=_log_opts(config),
        live_restore=info.live_restore,
        proxies=_proxies(info),
    )


def _log_opts(config: str) -> dict[str, str] | None:
    try:
        return _Config.model_validate_json(config).log_opts
    except ValidationError:
        return None


def _proxies(info: _Info) -> tuple[str, ...]:
    """Names only: the values may hold passwords."""
    named: Sequence[tuple[str, str]] = (
        ("HttpProxy", info.http_proxy),
        ("HttpsProxy", info.https_proxy),
    )
    return tuple(name for name, value in named if value)
