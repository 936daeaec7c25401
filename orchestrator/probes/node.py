"""The questions to a node in one round trip, as its inventory requires, and their answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from orchestrator import errors
from orchestrator.model.facts import DriverFacts, InfinibandFacts, NodeAnswer, Silent
from orchestrator.model.node import Node
from orchestrator.model.problem import Problem
from orchestrator.model.site import GpuSummary, NodeFacts, Topology
from orchestrator.probes import data, docker, gpu, health, host, infiniband, sections, topology
from orchestrator.probes.sections import Output, Section

Listing = TypeVar("Listing", bound=DriverFacts | Topology | InfinibandFacts)
HOST, GPU, TOPOLOGY, IBSTAT, VERBS, OFED = "host", "gpu", "topology", "ibstat", "verbs", "ofed"
GIDS = "gids"
HEALTH = "health"
NVLINKS, NVLINK_ERRORS = "nvlink", "nvlink.errors"
DRIVER = Section(GPU, ("nvidia-smi", "-q", "-x"), limit_s=20)
LINKS = Section(TOPOLOGY, ("nvidia-smi", "topo", "-m"), limit_s=20)
_NVLINK = (
    Section(NVLINKS, ("nvidia-smi", "nvlink", "--status"), limit_s=20),
    Section(NVLINK_ERRORS, ("nvidia-smi", "nvlink", "--errorcounters"), limit_s=20),
)
ADAPTERS = (
    Section(IBSTAT, ("ibstat",)),
    Section(VERBS, ("sh", "-c", "ibv_devinfo 2>&1")),
    Section(OFED, ("ofed_info", "-s")),
)


def questions(
    node: Node, *, python: str, folder: str, modules: tuple[str, ...] = (), contained: bool = False
) -> tuple[Section, ...]:
    """Return what a node is asked.

    Args:
        python, folder, modules: as of ``host.argv``.
        contained: whether containers read the data sets, without the rights of the node's root.
    """
    selected = [Section(HOST, host.argv(python, folder, modules), limit_s=25)]
    if node.gpus is not None:
        selected += (DRIVER, LINKS, *_NVLINK)
    if node.hcas:
        selected += ADAPTERS
    if any(hca.link_layer == "Ethernet" for hca in node.hcas):
        selected.append(Section(GIDS, infiniband.gids_argv()))
    if node.gpus is not None or node.hcas:
        selected.append(Section(HEALTH, health.argv(sudo=node.sudo)))
    if node.has_engine:
        selected += docker.sections(sudo=node.sudo)
    for name, path in sorted(node.data.items()):
        selected.append(data.section(f"{data.PREFIX}{name}", path, contained=contained))
    return tuple(selected)


def facts(answer: NodeAnswer) -> NodeFacts:
    """Return the part of an answer that the site file keeps."""
    driver, hcas = answer.gpu, answer.infiniband
    summary = None
    if isinstance(driver, DriverFacts):
        summary = GpuSummary(
            driver=driver.driver,
            cuda=driver.cuda,
            models=tuple(gpu.model or "?" for gpu in driver.gpus),
            bus_ids=tuple(gpu.bus_id for gpu in driver.gpus),
            memory_mib=tuple(gpu.memory_mib for gpu in driver.gpus),
            power_limits_w=tuple(gpu.power_limit_w for gpu in driver.gpus),
            vbios=tuple(gpu.vbios for gpu in driver.gpus),
        )
    return NodeFacts(
        host=answer.host,
        gpu=summary,
        topology=None if isinstance(answer.topology, Silent) else answer.topology,
        infiniband=hcas.ports if isinstance(hcas, InfinibandFacts) else None,
        ofed=answer.ofed,
        docker=None if isinstance(answer.docker, Silent) else answer.docker,
        data=answer.data,
    )


def listing(output: Output | None, parse: Callable[[str], Listing]) -> Listing | Silent | None:
    """Return the parsed fact, with problem EXIT-STATUS if its command failed all the same."""
    fact = sections.read(output, parse)
    if output is None or fact is None or isinstance(fact, Silent):
        return fact
    if output.exit_code in (0, gpu.WARNED):
        return fact
    said = output.err.strip()[:200] or "no message"
    problem = Problem("EXIT-STATUS", f"the command ended with {output.exit_code}: {said}")
    return replace(fact, problems=(*fact.problems, problem))


def read_answers(answers: sections.Answers) -> NodeAnswer:
    """Return a node's facts.

    Raises:
        LogError: HOST-HUNG, HOST-FACTS; a fact of every Linux machine is missing.
    """
    outputs = answers.outputs
    driver = outputs.get(GPU)
    if driver:  # warnings may stand on standard error
        driver = replace(driver, out=f"{driver.out}\n{driver.err}")
    if outputs[HOST].exit_code is None:
        raise errors.LogError(
            f"the node gave no host facts in time: {outputs[HOST].message}",
            code="HOST-HUNG",
            fix="look for a file system there that does not answer",
        )
    machine = host.parse(outputs[HOST].out)
    return NodeAnswer(
        # Other questions take seconds, so the clock that was read last counts.
        host=replace(machine, clock_s=answers.clock_s),
        gpu=listing(driver, gpu.parse),
        topology=listing(outputs.get(TOPOLOGY), topology.parse),
        infiniband=listing(outputs.get(IBSTAT), infiniband.parse),
        verbs=sections.read(outputs.get(VERBS), infiniband.parse_verbs),
        ofed=infiniband.ofed_version(outputs[OFED].out) if OFED in outputs else None,
        docker=docker.parse(outputs),
        health=sections.read(outputs.get(HEALTH), health.parse),
        nvlinks=sections.read(outputs.get(NVLINKS), topology.nvlinks),
        nvlink_errors=sections.read(outputs.get(NVLINK_ERRORS), topology.nvlink_errors),
        data=data.states(outputs),
        gids=sections.read(outputs.get(GIDS), infiniband.parse_gids),
    )
