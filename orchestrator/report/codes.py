"""Chinese meanings of the codes of problems and marks."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Mapping

from orchestrator.report.phrases import Language

_LOGS: Mapping[str, str] = {
    "CASE-MISMATCH": "日志与用例不符",
    "CLOCK-JUMP": "日志的时钟与打印的速率不一致",
    "CLOCK-STEP": "日志的时钟没有向前走",
    "COARSE-CLOCK": "日志的时钟只精确到秒",
    "CRASHED": "程序在最后一步之后出错",
    "DUP-STEPS": "迭代重复出现",
    "GAP": "窗口内有异常慢的迭代",
    "HEADERLESS": "日志没有参数部分",
    "LOSS-NOT-FINITE": "损失值不是有限数",
    "MALFORMED": "有无法解析的记录",
    "MALFORMED-OUTSIDE": "窗口之外有无法解析的记录",
    "MIXED-CONFIG": "日志中的参数自相矛盾",
    "NO-BATCH": "全局批大小未知",
    "NO-CLOCK": "日志的记录没有时间",
    "NO-HEADER": "日志的参数部分缺失或不全",
    "NO-RESULT": "日志缺少程序的最终结果",
    "NO-STEPS": "日志没有迭代记录",
    "NODE-SETS": "各次试验所用节点不同",
    "NOT-FINITE": "数值不是有限数",
    "RATE-MISMATCH": "吞吐率与日志打印的数值不一致",
    "SEVERAL-RUNS": "一个日志中有多次运行",
    "SHORT-RUN": "程序自行提前结束",
    "SKIPPED-STEPS": "迭代编号不连续",
    "TRUNCATED": "日志不完整",
    "WINDOW": "日志未覆盖测量窗口",
}

_RESULTS: Mapping[str, str] = {
    "ALIEN-PROCESS": "测量期间节点上有其他进程",
    "BASELINE-DIFFERS": "与 1x1 用例的测量条件不同",
    "BESIDE": "运行时其他节点上有别的试验",
    "CODE-CHANGED": "程序代码在测量期间有改动",
    "CPU-LOADED": "测量期间节点的 CPU 被其他任务占用",
    "DRIFT": "机器状态在测试过程中有变化",
    "IMPLAUSIBLE": "结果高于可能的上限",
    "LOG-CHANGED": "日志与运行时的不同",
    "LOG-COPY": "日志未能取回",
    "MISSING": "未运行或日志缺失",
    "OUTLIER": "与其他试验相差很远",
    "OUTCOME-CHANGED": "试验记录与运行时的不同",
    "PROVENANCE": "与其他试验的测量条件不同",
    "SAME-EVIDENCE": "与另一试验的日志相同",
    "STATE-CHANGED": "机器状态记录与运行时的不同",
    "THROTTLED": "测量期间 GPU 时钟被限制",
    "UNSETTLED": "达到最多次数后区间仍宽于要求",
    "SLOW-NODE": "有节点比其他节点慢",
    "WIDE-SPREAD": "各次试验相差较大",
}

_RUNS: Mapping[str, str] = {
    "CUDA-OOM": "显存不足",
    "DEADLINE": "超过时间上限",
    "DOCKER-DOWN": "节点的 Docker 未在运行",
    "DOCKER-HUNG": "节点的 Docker 没有响应",
    "DOCKER-RESTARTED": "节点的 Docker 在运行期间重启",
    "GPU-DETACHED": "容器在运行期间失去 GPU",
    "IB-HCA": "使用的 HCA 与要求不同",
    "IB-NO-DRIVER": "缺少 InfiniBand 用户态驱动",
    "INTERRUPTED": "被中止",
    "KILLED": "被外部终止",
    "LOG-REPLACED": "日志被程序删除或替换",
    "LOG-TOO-LARGE": "日志达到大小上限",
    "LOST": "启动或监督它的进程意外结束",
    "NET-IFACE": "所用的网络接口无法连通其他节点",
    "NODE-DOWN": "Slurm 已将节点判为不可用",
    "OOM": "内存不足，被内核终止",
    "PORT-BUSY": "端口被占用",
    "PREEMPTED": "Slurm 为更高优先级的作业让出节点",
    "PROGRAM-FAILED": "程序以错误状态退出",
    "REBOOTED": "节点在运行期间重启",
    "SHM-SMALL": "共享内存不足",
    "STALLED": "长时间没有输出",
    "START": "未能启动",
    "TRANSPORT": "未使用所要求的 InfiniBand",
    "TRANSPORT-UNPROVEN": "日志不能证明使用了 InfiniBand",
    "UNREACHABLE": "节点没有响应",
}

_REFUSALS: Mapping[str, str] = {
    "CONTAINER-GONE": "容器在运行期间被删除",
    "CONTAINER-START": "容器未能启动",
    "DISK-FULL": "节点的磁盘空间不足",
    "DOCKER-API": "节点的 Docker 接口不可用",
    "DOCKER-PERM": "没有使用 Docker 的权限",
    "DOCKER-REFUSED": "Docker 拒绝了请求",
    "FOLDERS": "各节点的工作目录不同",
    "GPU-RUNTIME": "容器无法使用 GPU",
    "IB-DEVICES": "节点没有 InfiniBand 设备文件",
    "IMAGE-MISSING": "镜像不存在",
    "KNOWN-HOSTS": "无法读写 known_hosts 文件",
    "LEFTOVER": "有任务未能清除",
    "MOUNT-MISSING": "要挂载的目录不存在",
    "NAME-TAKEN": "容器名已被占用",
    "OUTPUT": "命令的输出过多",
    "READ": "文件无法读取",
    "REG-5XX": "镜像仓库出错",
    "REG-AUTH": "镜像仓库拒绝访问",
    "REG-CUT": "与镜像仓库的连接中断",
    "REG-DIGEST": "镜像数据与摘要不符",
    "REG-RATELIMIT": "镜像仓库限制了访问频率",
    "REG-TLS": "镜像仓库的证书不受信任",
    "REG-UNREACHABLE": "无法连接镜像仓库",
    "SSH-AGENT": "没有 ssh-agent，或其中没有该密钥",
    "SSH-KEY": "SSH 密钥不可用",
    "STORE-DAMAGED": "状态目录中的记录已损坏",
    "STORE-FULL": "控制端的磁盘空间不足",
    "OPEN-FILES": "可打开的文件数不足",
    "STORE-RIGHTS": "无法读写状态目录",
    "STORE-VERSION": "状态目录中的记录属于其他版本",
    "ULIMIT": "节点不允许所要求的资源限制",
    "UNKILLABLE": "容器无法终止",
    "WRITE": "文件无法写入",
}

CHINESE: Mapping[str, str] = {**_LOGS, **_RESULTS, **_RUNS, **_REFUSALS}


def explained(language: Language, code: str) -> str:
    """The code, with its meaning in parentheses in Chinese if the code is known."""
    return f"{code}（{CHINESE[code]}）" if language == "zh" and code in CHINESE else code
