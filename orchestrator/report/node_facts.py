"""Facts of a sweep's nodes from provisioning, as reports print them."""

from collections import Counter
from collections.abc import Mapping

from orchestrator.model.site import HcaPort, NodeFacts, Site

WIDTH = 8  # letters of nvidia-smi's columns; a longer name widens all


def rows(facts: NodeFacts) -> dict[str, str]:
    """Return facts of a node by their names, in the order of reports, without unknown ones."""
    host, gpu = facts.host, facts.gpu
    models = Counter(gpu.models if gpu else ())
    values = {
        "hostname": host.hostname,
        "GPUs": ", ".join(f"{model} x {count}" for model, count in models.items()),
        **{f"HCA {hca.name}:{hca.port}": _hca(hca) for hca in facts.infiniband or ()},
        "CPU": host.cpu_model,
        "usable CPUs": str(host.cpus),
        "memory": f"{host.memory_mib} MiB",
        "system": host.system,
        "kernel": host.kernel,
        "driver": gpu and gpu.driver,
        "CUDA": gpu and gpu.cuda,
        "OFED": facts.ofed,
        "Docker": facts.docker and facts.docker.server_version,
        "torch": host.torch,
    }
    return {key: value for key, value in values.items() if value}


def topologies(site: Site) -> dict[str, str]:
    return {
        name: matrix(facts.topology.links, facts.topology.cpu_affinity)
        for name, facts in site.nodes.items()
        if facts.topology
    }


def matrix(links: Mapping[str, Mapping[str, str]], cpu_affinity: Mapping[str, str | None]) -> str:
    """Write the table of ``nvidia-smi topo -m`` without legend; empty if nothing was read."""
    columns = dict.fromkeys((*links, *(name for row in links.values() for name in row)))
    if not columns:
        return ""
    lines = [["", *columns, *(["CPU Affinity"] if cpu_affinity else [])]]
    for row, others in links.items():
        cells = (" X" if row == name else others.get(name, "?") for name in columns)
        lines.append([row, *cells, cpu_affinity.get(row) or ""])
    width = max(WIDTH, *(len(name) + 2 for name in columns))
    return "\n".join("".join(f"{cell:<{width}}" for cell in line).rstrip() for line in lines)


def gpu_models(site: Site) -> tuple[str, ...]:
    """Return the models of all GPUs of the cluster, each once; none if no driver named any."""
    models = {model for facts in site.nodes.values() if facts.gpu for model in facts.gpu.models}
    return tuple(sorted(models))


def _hca(hca: HcaPort) -> str:
    rate = f"{hca.rate_gbps} Gb/s" if hca.rate_gbps else ""
    parts = (" ".join(filter(None, (rate, hca.link_layer))), hca.type, hca.firmware)
    return ", ".join(filter(None, parts))
