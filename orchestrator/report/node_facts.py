"""Facts of a sweep's nodes from provisioning, as reports print them."""

from collections import Counter

from orchestrator import report
from orchestrator.model.site import HcaPort, NodeFacts, Site


def rows(facts: NodeFacts) -> dict[str, str]:
    """Facts of a node by their names, in the order of reports; unknown ones are left out."""
    host = facts.host
    values = {"hostname": host.hostname, "GPUs": _gpus(facts)}
    values |= {f"HCA {hca.name}:{hca.port}": _hca(hca) for hca in facts.infiniband or ()}
    values |= {
        "CPU": host.cpu_model,
        "usable CPUs": str(host.cpus),
        "memory": f"{host.memory_mib} MiB",
        "system": host.system,
        "kernel": host.kernel,
        "driver": (facts.gpu.driver or "") if facts.gpu else "",
        "CUDA": (facts.gpu.cuda or "") if facts.gpu else "",
        "OFED": facts.ofed or "",
        "Docker": facts.docker.server_version if facts.docker else "",
        "torch": host.torch,
    }
    return {key: value for key, value in values.items() if value}


def topologies(site: Site) -> dict[str, str]:
    """By node name, how its GPUs and HCAs are connected, in the driver's form."""
    return {
        name: report.matrix(facts.topology.links, facts.topology.cpu_affinity)
        for name, facts in site.nodes.items()
        if facts.topology
    }


def gpu_models(site: Site) -> tuple[str, ...]:
    """Models of all GPUs of the cluster, each once; empty where no driver told any."""
    models = {model for facts in site.nodes.values() if facts.gpu for model in facts.gpu.models}
    return tuple(sorted(models))


def _gpus(facts: NodeFacts) -> str:
    models = Counter(facts.gpu.models if facts.gpu else ())
    return ", ".join(f"{model} x {count}" for model, count in models.items())


def _hca(hca: HcaPort) -> str:
    rate = f"{hca.rate_gbps} Gb/s" if hca.rate_gbps else ""
    parts = (" ".join(filter(None, (rate, hca.link_layer))), hca.type, hca.firmware)
    return ", ".join(filter(None, parts))
