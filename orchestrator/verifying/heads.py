"""Heads and words of a report's tables, in both languages."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import re
from collections.abc import Mapping

_HEADS: Mapping[str, tuple[str, ...]] = {
    "batch": (
        *("batch", "批大小", "batch per GPU", "单卡批大小", "batch_size_per_device"),
        *("batch per process", "每进程批大小"),
    ),
    "case": ("case", "用例"),
    "codes": ("codes", "代码"),
    "difference": ("difference", "差异"),
    "efficiency": ("efficiency", "效率"),
    "energy": ("J per sample", "每样本能耗，J"),
    "evidence": ("evidence", "证据"),
    "from_median": ("difference from the median", "与中位数的差异"),
    "gpus": ("GPUs", "卡数", "processes", "进程数"),
    "gpus_per_node": (
        *("gpu_num_per_node", "GPUs per node", "每节点 GPU 数"),
        *("processes per node", "每节点进程数"),
    ),
    "ideal": ("ideal", "理想值"),
    "interval": ("interval (coverage)", "区间（覆盖率）"),
    "iterations": ("iterations", "迭代"),
    "latency": ("latency", "延迟"),
    "limits": ("limits seen", "出现过的限制"),
    "load": ("load", "负载"),
    "log": ("log", "日志"),
    "marks": ("marks", "标记"),
    "memory": ("memory", "显存"),
    "memory_mhz": ("memory clock, MHz", "显存时钟，MHz"),
    "moments": ("moments", "采样数"),
    "node": ("node", "节点"),
    "nodes": ("node_num", "num_nodes", "nodes", "节点数"),
    "others_cpus": ("CPUs used by others", "其他进程占用的 CPU 数"),
    "place": ("measured at", "测量时刻"),
    "power_w": ("power, W", "功率，W"),
    "precision": ("precision", "精度"),
    "published": ("published", "公布值"),
    "seconds": ("seconds", "秒"),
    "sha256": ("sha256",),
    "sm_mhz": ("SM clock, MHz", "SM 时钟，MHz"),
    "source": ("source", "来源"),
    "speed": ("speed", "相对速度"),
    "speedup": ("speedup", "加速比"),
    "speedup_interval": ("speedup interval (coverage)", "加速比区间（覆盖率）"),
    "spread": ("spread", "离散度"),
    "state": ("state", "状态"),
    "steal": ("steal", "被虚拟机管理程序占用"),
    "temperature_c": ("temperature, °C", "温度，°C"),
    "tflops": ("TFLOP/s per GPU", "单卡 TFLOP/s"),
    "throughput": ("median", "中位数", "measured", "实测值"),
    "to_first": ("difference from the first", "与首次的差异"),
    "transport": ("transport", "传输方式"),
    "trial": ("trial", "试验"),
    "trials": ("trials", "试验次数"),
    "utilisation_pct": ("utilisation, %", "利用率，%"),
}
KEYS = {head: key for key, heads in _HEADS.items() for head in heads}
STATES = {
    **{"有效": "valid", "无效": "invalid", "失败": "failed", "设施故障": "infra-lost"},
    **{"中断": "interrupted", "未运行": "planned", "无需运行": "not-needed"},
}
LIMITS = {"过热或功率制动": "heat or brakes"}
PLACES = {"开始": "start", "中间": "middle", "结束": "end"}
_RATE = re.compile(r"/s\b|/sec\b|throughput")
_CODE = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*")


def key(head: str) -> str:
    """What a column is about; empty where nothing of it is derived."""
    return KEYS.get(head) or ("throughput" if _RATE.search(head) else "")


def without_meanings(text: str) -> str:
    """A text without what Chinese reports say of a code."""
    return re.sub("（[^）]*）", " ", text)


def plain(key: str, cell: str) -> str:
    """A cell in English, its codes without their meanings."""
    if key in ("codes", "marks"):
        return " ".join(_CODE.findall(without_meanings(cell)))
    if key == "transport":
        return cell or "-"
    return {"state": STATES, "place": PLACES, "limits": LIMITS}.get(key, {}).get(cell, cell)
