"""The method section: how the numbers were measured."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable

from orchestrator.model.experiment import Method
from orchestrator.report import labels
from orchestrator.report.page import Page


def lines(page: Page) -> Iterable[str]:
    """Yield a line for each thing that a reader needs to repeat the measurement."""
    report, text = page.report, page.text
    if report.method is not None:
        yield _repeats(page, report.method)
    yield _rule(page)
    yield text(
        "Result: the median over the valid trials, rounded only when printed. The interval is made"
        " of order statistics and covers the true median with the probability given.",
        "结果：有效试验的中位数，仅在打印时舍入。区间由次序统计量构成，以所给的概率覆盖真实的中位数。",
    )
    yield text(
        "Speedup: the median over that of the 1x1 case that is equal in everything but placement,"
        " both unrounded; efficiency: speedup / world size. The interval of a speedup is Welch's"
        " for the trials' logarithms, widened to medians and means; it covers at least with the"
        " probability given.",
        "加速比：该用例的中位数 ÷ 除节点数与卡数外完全相同的 1x1 用例的中位数，两者均未舍入；"
        "效率：加速比 ÷ 总卡数。加速比的区间对试验取对数后按 Welch 方法计算，并扩展到同时包含"
        "中位数与均值之差，其覆盖率不低于所给概率。",
    )
    if report.step_flops:
        yield text(
            "TFLOP/s per GPU: counted floating-point operations of an optimizer step / (its time x"
            " GPUs).",
            "单卡 TFLOP/s：每个优化步的浮点运算次数 ÷（每步时间 × 卡数）。",
        )
        known = {case.precision.upper(): f"{it:g}" for case, it in report.peak_tflops.items()}
        peaks = ", ".join(f"{peak} ({name})" for name, peak in known.items())
        if known:
            yield text(
                "Of peak: of the TFLOP/s that the vendor of this GPU model publishes, without"
                f" sparsity: {peaks}.",
                f"峰值占比：相对于厂商公布的该型号 GPU 峰值 TFLOP/s（非稀疏）：{peaks}。",
            )
    if report.published:
        unknown = text(
            " The GPUs that wrote these logs are not known.", "这些日志所用的 GPU 型号未知。"
        )
        yield text(
            "Published: what others measured on the GPUs that are named, by the source that is"
            " named. Difference: measured / published - 1.",
            "公布值：他人在所注明的 GPU 上测得的结果，来源见表。差异：实测值 ÷ 公布值 - 1。",
        ) + ("" if report.gpus else unknown)
    if watched := report.canary:
        cases = [result.case for result in report.results]
        case, bound = labels.among([*cases, watched.case], watched.case), f"{watched.bound:.1%}"
        yield text(
            f"Canary: {case} is measured several times and counts in no median. A difference of"
            f" more than {bound}, the larger of 2 % and the spread of the case's own trials, is"
            " marked DRIFT.",
            f"监测用例：{case} 在测试过程中多次测量，不计入中位数。差异超过 {bound}"
            "（取 2 % 与该用例自身离散度中的较大者）时标记为 DRIFT。",
        )
    if report.added_env:
        env = ", ".join(f"{name}={value}" for name, value in sorted(report.added_env.items()))
        yield text(
            f"Environment added by playbook and inventory: {env}.",
            f"测试方案和节点清单添加的环境变量：{env}。",
        )


def _repeats(page: Page, method: Method) -> str:
    often, iterations = method.repeats, method.iterations
    order = page.text("trials run repeat by repeat over all cases", "每一轮依次运行全部用例")
    if method.pack != "none":
        order = page.text(
            "trials ran side by side on nodes of their own, the repeats of a case on the nodes in"
            " turn",
            "各试验在各自的节点上并行运行，同一用例的各次试验轮流使用各节点",
        )
    if isinstance(often, int):
        return page.text(
            f"{often} trials of each case, {iterations} iterations asked of the program; {order}.",
            f"每个用例进行 {often} 次试验，要求程序运行 {iterations} 次迭代；{order}。",
        )
    return page.text(
        f"{often.min} to {often.max} trials of each case: no more once the interval of its median"
        f" is at most {often.until_interval} of the median wide; {iterations} iterations asked of"
        f" the program; {order}. The probability beside an interval then holds on average over all"
        " cases; intervals of cases that settled early cover less.",
        f"每个用例进行 {often.min} 至 {often.max} 次试验：中位数的区间宽度不超过中位数的"
        f" {often.until_interval} 时不再继续；要求程序运行 {iterations} 次迭代；{order}。"
        "此时区间旁的概率是对全部用例的平均值；提前停止的用例，其区间的覆盖率较低。",
    )


def _rule(page: Page) -> str:
    rule, text = page.report.rule, page.text
    if rule == "reported":
        return text(
            "Throughput of a trial: what the program itself reports at its end.",
            "单次试验的吞吐率：程序结束时自己报告的数值。",
        )
    if rule is None or page.report.window is None:
        return text(
            "Throughput of a log: by what the log is, in its own window: by its clock, as global"
            " batch size / its mean latency, or as the program itself reports it at its end.",
            "每份日志的吞吐率由日志自身的形式决定，并取其自身的窗口：按日志的时钟计算，"
            "或为全局批大小 ÷ 平均延迟，或为程序结束时自己报告的数值。",
        )
    first, last = page.report.window
    if rule == "clock":
        return text(
            f"Throughput of a trial: global batch size x {last - first} / the time between the log"
            f" lines of iterations {first} and {last}, by the log's own numbers and clock.",
            f"单次试验的吞吐率：全局批大小 × {last - first} ÷ 日志中第 {first} 次与第 {last} 次迭代"
            "两行之间的时间，迭代编号和时间均取自日志本身。",
        )
    if rule == "latency":
        return text(
            "Throughput of a trial: global batch size / the mean latency of a step, over the rows"
            f" that the program prints from step {first} to {last}.",
            "单次试验的吞吐率：全局批大小 ÷ 每步的平均延迟；平均延迟取程序在第"
            f" {first} 至第 {last} 步所打印的各行。",
        )
    kind, chinese = ("harmonic", "调和") if rule == "rates" else ("arithmetic", "算术")
    return text(
        f"Throughput of a trial: the {kind} mean of the rates that the program prints from"
        f" iteration {first} to {last}.",
        f"单次试验的吞吐率：程序在第 {first} 至第 {last} 次迭代所打印速率的{chinese}平均值。",
    )
