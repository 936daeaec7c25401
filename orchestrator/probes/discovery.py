"""Probe for a machine of no inventory: GPUs, adapters, Docker, Slurm."""

import re
from dataclasses import dataclass, replace

from orchestrator.model.facts import Gid, Silent
from orchestrator.model.site import HcaPort, NodeFacts
from orchestrator.probes import Probe, docker, host, infiniband, node, read_values, sections
from orchestrator.probes.sections import Answers, Section

_PORTS = r"""
cd /sys/class/infiniband 2>/dev/null || exit 0
for port in */ports/*; do
    [ -r "$port/state" ] || continue
    printf '%s|%s|%s|%s|%s\n' "${port%%/*}" "${port##*/}" "$(cat "$port/state")" \
        "$(cat "$port/rate")" "$(cat "$port/link_layer")"
done
"""
_PLACE = r"""
printf 'server %s\n' "$(printf '%s' "$SSH_CONNECTION" | cut -d' ' -f3)"
ip -o route show default 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/route \1/p' | head -n 1
PATH=$PATH:/usr/local/bin:/opt/slurm/bin
! command -v sinfo >/dev/null 2>&1 || printf 'slurm %s\n' "$(sinfo --version 2>/dev/null)"
exit 0
"""
_PORT = re.compile(
    r"^(?P<hca>[^|\n]+)\|(?P<port>[0-9]+)\|(?P<state>[^|\n]*)"
    r"\|(?P<rate>[0-9]+)(?:\.[0-9]+)? Gb/sec[^|\n]*\|(?P<layer>InfiniBand|Ethernet)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Discovered:
    """A machine's answer; facts that it lacks or did not report are empty.

    Args:
        sudo: whether Docker answers to ``sudo -n`` alone.
        server: the address at which the SSH session arrived; empty for this machine itself.
        route: the interface of the default route.
        slurm: what ``sinfo --version`` prints.
    """

    facts: NodeFacts
    gids: tuple[Gid, ...]
    why_no_docker: str
    sudo: bool
    server: str
    route: str
    slurm: str

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models of its GPUs, by index."""
        return self.facts.gpu.models if self.facts.gpu else ()


def questions(folder: str) -> tuple[Section, ...]:
    """Return what is asked of a machine, in whose ``folder`` attempts would lie."""
    return (
        Section(node.HOST, host.argv("python3", folder, ()), limit_s=25),
        node.DRIVER,
        node.LINKS,
        Section("ports", ("sh", "-c", _PORTS)),
        Section(node.GIDS, infiniband.gids_argv()),
        Section("place", ("sh", "-c", _PLACE)),
        *docker.sections(sudo=False),
        Section("sudo", ("sudo", "-n", "docker", "info", "--format", "{{.ServerVersion}}")),
    )


def probe(folder: str, *, nonce: str) -> Probe[Discovered]:
    return sections.probe("discovery", questions(folder), read_answers, nonce=nonce)


def read_answers(answers: Answers) -> Discovered:
    """Return the answers to all questions.

    Raises:
        LogError: HOST-HUNG, HOST-FACTS; a fact of every Linux machine is missing.
    """
    outputs, answer = answers.outputs, node.read_answers(answers)
    engine = answer.docker
    is_denied = isinstance(engine, Silent) and engine.code == "DENIED"
    place = read_values(outputs["place"].out)
    return Discovered(
        facts=replace(node.facts(answer), infiniband=ports(outputs["ports"].out)),
        gids=infiniband.parse_gids(outputs[node.GIDS].out),
        why_no_docker=engine.message or engine.code if isinstance(engine, Silent) else "",
        sudo=is_denied and outputs["sudo"].exit_code == 0,
        server=place.get("server", [""])[0],
        route=place.get("route", [""])[0],
        slurm=place.get("slurm", [""])[0],
    )


def ports(text: str) -> tuple[HcaPort, ...]:
    """Return the ports in lines of ``adapter|port|state|rate|link layer``; drop unreadable ones.

    Source:
        Linux, Documentation/ABI/stable/sysfs-class-infiniband: ``4: ACTIVE``, and a rate such as
        ``400 Gb/sec (4X NDR)``.
    """
    return tuple(
        HcaPort(
            name=line["hca"],
            port=int(line["port"]),
            type=None,
            firmware=None,
            state="Active" if "ACTIVE" in line["state"] else "Down",
            rate_gbps=int(line["rate"]),
            link_layer=line["layer"],
        )
        for line in _PORT.finditer(text)
    )
