"""English and Chinese meanings of the codes of problems and marks."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Mapping

from orchestrator.report.phrases import LANGUAGES, Language

_LOGS: Mapping[str, tuple[str, str]] = {
    "CASE-MISMATCH": ("the log is of another case", "日志与用例不符"),
    "CLOCK-JUMP": ("the clock and a printed rate disagree", "日志的时钟与打印的速率不一致"),
    "CLOCK-STEP": ("the log's clock did not go forward", "日志的时钟没有向前走"),
    "COARSE-CLOCK": ("the log's clock has whole seconds only", "日志的时钟只精确到秒"),
    "CRASHED": ("the program failed behind its last step", "程序在最后一步之后出错"),
    "DUP-STEPS": ("an iteration is there twice", "迭代重复出现"),
    "GAP": ("an iteration in the window was unusually slow", "窗口内有异常慢的迭代"),
    "HEADERLESS": ("the log has no header", "日志没有参数部分"),
    "LOSS-NOT-FINITE": ("the loss is not finite", "损失值不是有限数"),
    "MALFORMED": ("a record cannot be read", "有无法解析的记录"),
    "MALFORMED-OUTSIDE": ("a record outside the window cannot be read", "窗口之外有无法解析的记录"),
    "MIXED-CONFIG": ("the log's header contradicts itself", "日志中的参数自相矛盾"),
    "NO-BATCH": ("the global batch size is not known", "全局批大小未知"),
    "NO-CLOCK": ("the records have no time", "日志的记录没有时间"),
    "NO-HEADER": ("the log's header is missing or not whole", "日志的参数部分缺失或不全"),
    "NO-RESULT": ("the program's own result is missing", "日志缺少程序的最终结果"),
    "NO-STEPS": ("the log has no iterations", "日志没有迭代记录"),
    "NODE-SETS": ("trials ran on different nodes", "各次试验所用节点不同"),
    "NOT-FINITE": ("a number is not finite", "数值不是有限数"),
    "RATE-MISMATCH": ("the clock and the printed rates differ", "吞吐率与日志打印的数值不一致"),
    "SEVERAL-RUNS": ("several runs in one log", "一个日志中有多次运行"),
    "SHORT-RUN": ("the program ended by itself before the promised steps", "程序自行提前结束"),
    "SKIPPED-STEPS": ("iterations are missing", "迭代编号不连续"),
    "TRUNCATED": ("the log is not whole", "日志不完整"),
    "WINDOW": ("the log does not cover the window", "日志未覆盖测量窗口"),
}

_RESULTS: Mapping[str, tuple[str, str]] = {
    "ALIEN-PROCESS": ("a process of others ran on the node", "测量期间节点上有其他进程"),
    "BASELINE-DIFFERS": (
        "the 1x1 case was measured under other conditions",
        "与 1x1 用例的测量条件不同",
    ),
    "BESIDE": ("other trials ran beside it", "运行时其他节点上有别的试验"),
    "CODE-CHANGED": ("the program was edited while it was measured", "程序代码在测量期间有改动"),
    "CPU-LOADED": ("others used the node's CPUs", "测量期间节点的 CPU 被其他任务占用"),
    "DRIFT": ("the machines changed during the sweep", "机器状态在测试过程中有变化"),
    "IMPLAUSIBLE": ("more than the hardware can give", "结果高于可能的上限"),
    "LOG-CHANGED": ("the log is not what it was after the run", "日志与运行时的不同"),
    "LOG-COPY": ("the log could not be fetched", "日志未能取回"),
    "MISSING": ("not run, or without a log", "未运行或日志缺失"),
    "NOT-PLACED": (
        "the state of the machines cannot be placed in the window",
        "机器状态无法对应到测量窗口",
    ),
    "OUTLIER": ("far from the other trials", "与其他试验相差很远"),
    "OUTCOME-CHANGED": ("the record is not what it was after the run", "试验记录与运行时的不同"),
    "PROVENANCE": (
        "measured under other conditions than the other trials",
        "与其他试验的测量条件不同",
    ),
    "SAME-EVIDENCE": ("the same log as another trial", "与另一试验的日志相同"),
    "STATE-CHANGED": (
        "the record of the machine is not what it was after the run",
        "机器状态记录与运行时的不同",
    ),
    "THROTTLED": ("a GPU's clocks were held down", "测量期间 GPU 时钟被限制"),
    "UNSETTLED": ("the interval is wider than requested", "达到最多次数后区间仍宽于要求"),
    "SLOW-NODE": ("a node is slower than the others", "有节点比其他节点慢"),
    "WIDE-SPREAD": ("trials differ much", "各次试验相差较大"),
}

_RUNS: Mapping[str, tuple[str, str]] = {
    "CUDA-OOM": ("the GPU's memory was too small", "显存不足"),
    "DEADLINE": ("longer than the time limit", "超过时间上限"),
    "DOCKER-DOWN": ("Docker is not running", "节点的 Docker 未在运行"),
    "DOCKER-HUNG": ("Docker does not answer", "节点的 Docker 没有响应"),
    "DOCKER-RESTARTED": ("Docker was restarted", "节点的 Docker 在运行期间重启"),
    "GPU-DETACHED": ("the container lost its GPUs while it ran", "容器在运行期间失去 GPU"),
    "IB-HCA": ("other adapters were used than declared", "使用的 HCA 与要求不同"),
    "IB-NO-DRIVER": ("no user-space driver of the adapter", "缺少 InfiniBand 用户态驱动"),
    "INTERRUPTED": ("stopped by the user", "被中止"),
    "KILLED": ("ended by a signal", "被外部终止"),
    "LOG-REPLACED": ("the program removed or replaced its log", "日志被程序删除或替换"),
    "LOG-TOO-LARGE": ("the log reached its limit", "日志达到大小上限"),
    "LOST": ("the process that watched it ended", "启动或监督它的进程意外结束"),
    "NET-IFACE": ("the interface has no route", "所用的网络接口无法连通其他节点"),
    "NODE-DOWN": ("the node failed", "Slurm 已将节点判为不可用"),
    "OOM": ("out of memory", "内存不足，被内核终止"),
    "PORT-BUSY": ("the port was taken", "端口被占用"),
    "PREEMPTED": ("a job of higher priority took the nodes", "Slurm 为更高优先级的作业让出节点"),
    "PROGRAM-FAILED": ("the program failed", "程序以错误状态退出"),
    "REBOOTED": ("the node was restarted", "节点在运行期间重启"),
    "SHM-SMALL": ("shared memory is too small", "共享内存不足"),
    "STALLED": ("nothing was printed for too long", "长时间没有输出"),
    "START": ("a task could not be started", "未能启动"),
    "TRANSPORT": (
        "the network between nodes was not the declared one",
        "未使用所要求的 InfiniBand",
    ),
    "TRANSPORT-UNPROVEN": ("no log proves which network was used", "日志不能证明使用了 InfiniBand"),
    "UNREACHABLE": ("the node did not answer", "节点没有响应"),
}

_REFUSALS: Mapping[str, tuple[str, str]] = {
    "CONTAINER-GONE": ("a container was removed while it ran", "容器在运行期间被删除"),
    "CONTAINER-START": ("the container does not start", "容器未能启动"),
    "DISK-FULL": ("too little disk space", "节点的磁盘空间不足"),
    "DOCKER-API": ("Docker's API cannot be spoken", "节点的 Docker 接口不可用"),
    "DOCKER-FOREIGN": ("docker is not the node's own Docker", "docker 命令不是本节点的 Docker"),
    "DOCKER-MISSING": ("there is no Docker", "节点没有 Docker"),
    "DOCKER-PERM": ("the user may not use Docker", "没有使用 Docker 的权限"),
    "DOCKER-REFUSED": ("Docker refused a request, in its own words", "Docker 拒绝了请求"),
    "FOLDERS": ("working folders of nodes differ", "各节点的工作目录不同"),
    "GPU-RUNTIME": ("containers get no GPU", "容器无法使用 GPU"),
    "IB-DEVICES": ("no /dev/infiniband", "节点没有 InfiniBand 设备文件"),
    "IMAGE-MISSING": ("the image is missing", "镜像不存在"),
    "KNOWN-HOSTS": ("known_hosts cannot be used", "无法读写 known_hosts 文件"),
    "LEFTOVER": ("something may still run", "有任务未能清除"),
    "MOUNT-MISSING": ("a folder to be mounted is not there", "要挂载的目录不存在"),
    "NAME-TAKEN": ("the container's name is taken", "容器名已被占用"),
    "OUTPUT": ("a command wrote far too much", "命令的输出过多"),
    "READ": ("a file cannot be read", "文件无法读取"),
    "REG-5XX": ("the registry failed", "镜像仓库出错"),
    "REG-AUTH": ("the registry refuses access", "镜像仓库拒绝访问"),
    "REG-CUT": ("connections end in the middle", "与镜像仓库的连接中断"),
    "REG-DIGEST": ("what came is not what its digest says", "镜像数据与摘要不符"),
    "REG-RATELIMIT": ("too many pulls", "镜像仓库限制了访问频率"),
    "REG-TLS": ("the node does not trust the registry's certificate", "镜像仓库的证书不受信任"),
    "REG-UNREACHABLE": ("the node does not reach the registry", "无法连接镜像仓库"),
    "SSH-AGENT": ("no ssh-agent, or it lacks the key", "没有 ssh-agent，或其中没有该密钥"),
    "SSH-KEY": ("the SSH key cannot be used", "SSH 密钥不可用"),
    "STORE-DAMAGED": ("a file of the state folder was changed or cut", "状态目录中的记录已损坏"),
    "STORE-FULL": ("the disk is full", "控制端的磁盘空间不足"),
    "OPEN-FILES": ("too few open files for that many nodes", "可打开的文件数不足"),
    "STORE-RIGHTS": ("the state folder cannot be written", "无法读写状态目录"),
    "STORE-VERSION": ("another version of the program wrote it", "状态目录中的记录属于其他版本"),
    "ULIMIT": ("the node does not allow the container's limits", "节点不允许所要求的资源限制"),
    "UNKILLABLE": ("a container does not end", "容器无法终止"),
    "WRITE": ("a file cannot be written", "文件无法写入"),
}

MEANINGS: Mapping[str, tuple[str, str]] = {**_LOGS, **_RESULTS, **_RUNS, **_REFUSALS}


def explained(language: Language, code: str) -> str:
    """Return the code with its meaning in parentheses if the code is known."""
    meaning = MEANINGS.get(code, ("", ""))[LANGUAGES.index(language)]
    if not meaning:
        return code
    return f"{code}（{meaning}）" if language == "zh" else f"{code} ({meaning})"
