"""Facts of a sweep's nodes from provisioning, as reports print them."""

from collections import Counter

from orchestrator import report
from orchestrator.model.site import HcaSummary, NodeFacts, Site

V100_SXM2 = "V100-SXM2"
V100_SXM2_TFLOPS = 125.0  # of its tensor cores; source: DLPerf's report on GPT of May 2021


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


def peak_tflops(site: Site) -> float | None:
    """Of each GPU, if all GPUs of the cluster are of the model whose peak is known."""
    models = gpu_models(site)
    return V100_SXM2_TFLOPS if models and all(V100_SXM2 in model for model in models) else None


def _gpus(facts: NodeFacts) -> str:
    models = Counter(facts.gpu.models if facts.gpu else ())
    return ", ".join(f"{model} x {count}" for model, count in models.items())


def _hca(hca: HcaSummary) -> str:
    rate = f"{hca.rate_gbps} Gb/s" if hca.rate_gbps else ""
    parts = (" ".join(filter(None, (rate, hca.link_layer))), hca.type, hca.firmware)
    return ", ".join(filter(None, parts))
