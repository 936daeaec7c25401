"""Logs as OneFlow's programs write them, with clocks that give the throughput that is asked for."""

from collections.abc import Mapping

# Seed 000, "All Results", by placement.
SEED_000 = {
    "1n1g": (383.8, 384.9, 385.1, 384.9, 383.7, 384.9, 382.3),
    "1n8g": (2961.6, 2961.6, 2969.5, 2990.0, 3006.3, 2985.9, 2967.2),
    "2n8g": (5915.6, 5921.0, 5862.3, 5974.3, 5906.6, 5826.5, 5859.8),
    "4n8g": (11651.9, 11797.7, 11613.3, 11746.5, 11749.2, 11682.2, 11711.2),
}


def ranks(token: str) -> tuple[int, int]:
    """Return nodes and GPUs per node by a folder's name."""
    nodes, gpus = token[:-1].split("n")
    return int(nodes), int(gpus)


def rn50(token: str, throughput: float, began: float) -> str:
    """Return a log of OneFlow's ResNet-50, batch 128."""
    nodes, gpus = ranks(token)
    took = 128 * nodes * gpus * 100 / throughput
    head = {"model": "resnet50", "num_nodes": nodes, "gpu_num_per_node": gpus}
    lines = [
        f"{key:>44} = {value}" for key, value in {**head, "batch_size_per_device": 128}.items()
    ]
    for iteration in range(20, 121, 20):
        at = began + took * (iteration - 20) / 100
        lines.append(
            f"train: epoch 0, iter {iteration}, loss: 7.087004, top_1: 0.000000, top_k: 0.000000,"
            f" samples/s: {throughput:.3f} {at:.7f}"
        )
    return "\n".join(lines) + "\n"


def bert(token: str, throughput: float, began: float) -> str:
    """Return a log of OneFlow's BERT, batch 96."""
    nodes, gpus = ranks(token)
    took = 96 * nodes * gpus * 100 / throughput
    head = {"batch_size_per_device": 96, "gpu_num_per_node": gpus, "num_nodes": nodes}
    lines = [f"{key} = {value}" for key, value in head.items()]
    for step in range(19, 140, 20):
        at = began + took * (step - 19) / 100
        lines.append(
            f"step: {step}, total_loss: 9.725, mlm_loss: 8.960, nsp_loss: 0.766,"
            f" throughput: {throughput:.3f} {at:.7f}"
        )
    return "\n".join(lines) + "\n"


def gpt(shape: Mapping[str, int], latency_ms: float, memory_mib: int) -> str:
    """Return a log of OneFlow's GPT: its arguments, its node's GPUs, and a row every ten steps."""
    lines = ["------------------------ arguments ------------------------"]
    lines += [f"  {key} {'.' * (48 - len(key))} {value}" for key, value in shape.items()]
    lines += ["-------------------- end of arguments ---------------------", "Training..."]
    lines += ["utilization.gpu [%], memory.used [MiB]", f"100 %, {memory_mib - 120} MiB"]
    lines += [f"81 %, {memory_mib} MiB"]
    lines += ["| step     | micro_batches   | samples         | throughput | latency    | loss |"]
    lines += ["| -------- | --------------- | --------------- | ---------- | ---------- | ---- |"]
    batch = shape["global_batch_size"]
    # The mean of five rows of five decimals is a multiple of 0.002 ms, as all published ones are.
    base, more = divmod(round(latency_ms * 500), 5)
    for step in range(10, 101, 10):
        took = (base + (step == 60) * more) / 100_000 + (0.9 if step == 10 else 0)
        lines.append(
            f"| {step:<8} | {step * shape['num_accumulation_steps']:<15} | {step * batch:<15} |"
            f" {batch / took:<10.5f} | {took:<10.5f} | 7.00000 |"
        )
    return "\n".join(lines) + "\n"
