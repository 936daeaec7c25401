"""Facts of a node's Docker engine, and of the NVIDIA software beside it."""

import re
from collections.abc import Mapping

from pydantic import AliasPath, BaseModel, Field, ValidationError

from orchestrator.model.facts import Silent
from orchestrator.model.site import DockerFacts, kind_of_silence
from orchestrator.probes import number, read_values
from orchestrator.probes.sections import Output, Section, read

INFO, VERSION = "docker.info", "docker.version"
# Prints the engine's `info` as one line of JSON, then lines `key value` about hooks, CDI files and
# the disk. `info` runs once, since each `info` starts runc and docker-init for their versions. JSON
# escapes a path with \ & < >. The containerd of the system has a root of its own.
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
cdi=$(grep -ls 'nvidia\.com/gpu' /etc/cdi/* /var/run/cdi/*)
[ -z "$cdi" ] || echo cdi
exit 0
"""
_ENDPOINT = re.compile(r"^endpoint ((?!unix:)\w+:\S+)$", re.MULTILINE)


class _Info(BaseModel):
    """The keys of ``docker info`` that count here; absent ones are as the engine's zero value."""

    server_version: str = Field("", alias="ServerVersion")
    root_dir: str = Field("", alias="DockerRootDir")
    runtimes: dict[str, object] | None = Field(None, alias="Runtimes")
    cdi_folders: list[str] | None = Field(None, alias="CDISpecDirs")
    security: list[str] | None = Field(None, alias="SecurityOptions")
    http_proxy: str = Field("", alias="HttpProxy")
    https_proxy: str = Field("", alias="HttpsProxy")
    errors: list[str] | None = Field(None, alias="ServerErrors")


class _Version(BaseModel):
    """The keys of ``docker version``; a client alone says null in place of a server."""

    api_version: str = Field("", validation_alias=AliasPath("Server", "ApiVersion"))
    components: list[dict[str, object]] | None = Field(
        None, validation_alias=AliasPath("Server", "Components")
    )


def sections(*, sudo: bool) -> tuple[Section, ...]:
    """Return the questions about the engine, which the user reaches through ``sudo -n`` if told."""
    docker = ("sudo", "-n", "docker") if sudo else ("docker",)
    return (
        Section(INFO, ("sh", "-c", SCRIPT, "sh", *docker)),
        Section(VERSION, (*docker, "version", "--format", "{{json .}}")),
    )


def parse(outputs: Mapping[str, Output]) -> DockerFacts | Silent | None:
    """Return the facts in both outputs, or the reason there are none; None if not asked.

    Source:
        Docker's manual, "Rootless mode", known limitations: `--net=host` is the network namespace
        of RootlessKit, not that of the node.
    """
    if INFO not in outputs:
        return None
    silent = read(outputs[INFO], str)
    if isinstance(silent, Silent):
        return silent
    if outputs[INFO].exit_code:
        code = kind_of_silence(outputs[INFO].err) or "REFUSED"
        return Silent(code, outputs[INFO].message)
    said, _, beside = outputs[INFO].out.partition("\n")
    try:
        info = _Info.model_validate_json(said)
        version = _Version.model_validate_json(outputs[VERSION].out)
    except ValidationError as error:
        return Silent("UNREADABLE", f"{error.title}: {error.errors()[0]['msg']}")
    if not info.server_version or info.errors or not version.api_version:
        return Silent("DOWN", "; ".join(info.errors or ()) or outputs[VERSION].message)
    versions = {part.get("Name"): str(part.get("Version")) for part in version.components or ()}
    if "Podman Engine" in versions:
        seen = f"podman {versions['Podman Engine']} serves Docker's API"
        return Silent("FOREIGN", seen)
    if endpoint := _ENDPOINT.search(beside):
        seen = f"the docker command reaches {endpoint[1]} (its context, or DOCKER_HOST)"
        return Silent("FOREIGN", seen)
    if "name=rootless" in (info.security or ()):
        seen = f"Docker {info.server_version} is rootless: its containers lack the node's network"
        return Silent("FOREIGN", seen)
    values = read_values(beside)
    free_kib = number(values, "free_kib")
    proxies = {"HttpProxy": info.http_proxy, "HttpsProxy": info.https_proxy}
    return DockerFacts(
        server_version=info.server_version,
        api_version=version.api_version,
        runtimes=tuple(sorted(info.runtimes or ())),
        cdi=bool(info.cdi_folders) and "cdi" in values,
        gpu_hook="hook" in values,
        root_dir=values.get("root", [info.root_dir])[0],
        free_mib=None if free_kib is None else free_kib // 1024,
        # Names only: the values may hold passwords.
        proxies=tuple(name for name, value in proxies.items() if value),
    )
