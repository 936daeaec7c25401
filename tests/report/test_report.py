"""report.md: the documents' shape, nothing hidden, and nothing that is obeyed."""

from dataclasses import replace

from orchestrator import report
from orchestrator.model.log import Fabric, Port
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LoneLog
from orchestrator.model.result import NodeSpeed
from orchestrator.report import labels
from tests.reported import (
    LOG,
    PUBLISHED,
    SEED_AMP,
    SHA256,
    folder,
    results,
    rows,
    section,
    sweep,
    tables,
    unrun,
)

TRIALS = "All trials"
GLANCE = "Cases at a glance"
HARDWARE = PUBLISHED.hardware
HOSTILE = "a|b`c`<img src=x>*d*_e_[f](g)\\&\n# h\x1b[31m"
HARMLESS = r"a\|b\`c\`&lt;img src=x>\*d\*\_e\_\[f\](g)\\&amp; # h \[31m"


def test_markdown_has_its_sections_in_order() -> None:
    """The verdict, one table, figures, evidence; the settings of all cases below the table."""
    found = sweep(results(SEED_AMP, params=(("loss_scale", "dynamic"),)))
    text = report.markdown(found)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        *("# ResNet-50 v1.5", "## What a reader must know", "## Cases at a glance", "## Figures"),
        *("## All trials", "## Evidence of each trial", "## Environment", "## How it was measured"),
    ]
    said = section(text, GLANCE)
    assert "Throughput in images/s; of each case the median over its valid trials." in said
    assert r"- All cases: AMP, batch size 256, on cuda, loss\_scale dynamic" in said


def test_one_table_says_all_that_a_number_is_worth() -> None:
    """Interval, spread, speedup with its interval, efficiency and trials in the row of a case."""
    (glance,) = tables(section(report.markdown(sweep(results(SEED_AMP))), GLANCE))
    assert glance[0] == [
        *("case", "images/s", "interval (coverage)", "spread", "speedup", "efficiency", "trials"),
    ]
    assert glance[1][4] == "1.00"
    assert glance[3] == [
        *("4x8", "22551.16", "22053.98 to 23049.75 (93.75%)", "4.4%"),
        *("28.09, 27.42 to 28.88 (95.00%)", "87.8%", "5/5"),
    ]


def test_markdown_shows_every_trial_with_its_evidence() -> None:
    """All 15, and apart from the numbers each one's log and the beginning of its sha256."""
    text = report.markdown(sweep(results(SEED_AMP)))
    every, evidence = rows(text, TRIALS), rows(text, "Evidence of each trial")
    assert len(every) == len(evidence) == 15
    named = {"case": "4x8", "trial": "2"}
    assert every[11] == {**named, "images/s": "22551.16", "state": "valid"}
    assert evidence[11] == {
        **named,
        **{"log": r"logs/4n8g/r50\_b256\_amp\_2.log", "sha256": "0123456789ab"},
    }


def test_markdown_compares_the_nodes_and_names_the_slow_one() -> None:
    """A row for each node; what is marked of the whole stands first."""
    speeds = (NodeSpeed("vs001", 4, 1.0012), NodeSpeed("vs_2", 3, 0.949, is_slow=True))
    slow = (Problem("SLOW-NODE", "vs_2 is 5.0% slower than the 1 other node"),)
    text = report.markdown(sweep(results(SEED_AMP), node_speeds=speeds, marks=slow))
    (found,) = tables(section(text, "Nodes beside one another"))
    assert found == [
        ["node", "trials", "speed over the median node", "marks"],
        ["vs001", "4", "1.001", ""],
        [r"vs\_2", "3", "0.949", "SLOW-NODE (a node is slower than the others)"],
    ]
    assert (
        r"SLOW-NODE (a node is slower than the others)**: v100x4: vs\_2 is 5.0% slower"
        in section(text, "What a reader must know")
    )


def test_markdown_says_that_trials_ran_side_by_side() -> None:
    """Instead of that they ran one after another, repeat by repeat."""
    found = sweep(results(SEED_AMP))
    assert found.method is not None
    packed = found.method.model_copy(update={"pack": "disjoint"})
    text = report.markdown(replace(found, method=packed))
    assert "- 5 trials of each case, 151 iterations asked of the program; trials ran side" in text
    assert "repeat by repeat" not in text


def test_markdown_says_how_it_was_measured_and_on_what() -> None:
    """Window, repeats, image and nodes; a fact that a node did not give stays empty."""
    text = report.markdown(sweep(results(SEED_AMP)))
    assert (
        "global batch size x 100 / the time between the log lines of iterations 25 and 125" in text
    )
    assert "- 5 trials of each case, 151 iterations asked of the program" in text
    assert "- Image: ngc-pytorch-20.03, sha256:5e\n" in text
    assert tables(section(text, "Environment"))[0] == [
        ["", "vs001", "vs002"],
        ["kernel", "Linux 4.4.0-116", ""],
        ["driver", "", "440.33.01"],
    ]


def test_shared_machine_is_said_at_the_top() -> None:
    """Before any number, since none of them says how anything scales."""
    text = report.markdown(sweep(results(SEED_AMP), shared_machine=True))
    assert text.split("\n\n")[2].startswith("> **SHARED-MACHINE: nodes of this cluster are one")
    assert "SHARED-MACHINE" not in report.markdown(sweep(results(SEED_AMP)))


def test_image_without_a_digest_is_said_at_the_top() -> None:
    """UNLOCKED belongs to an image; a folder of logs has none."""
    text = report.markdown(sweep(results(SEED_AMP), image_digest=""))
    assert text.split("\n\n")[2] == "> **UNLOCKED: the image has no known digest.**"
    assert "- Image: ngc-pytorch-20.03, digest unknown\n" in text
    assert "UNLOCKED" not in report.markdown(folder(found=results(SEED_AMP)))


def test_trials_that_do_not_count_are_named_with_their_reason() -> None:
    """At the top that there are some, in the table over how many the median is, below why."""
    found = sweep(results({"1x1": (800.0, None, 802.0, None, 804.0)}))
    text = report.markdown(found)
    assert found.incomplete == 2
    assert "> **INCOMPLETE: 3 of 5 trials count; 1 of 1 cases" in text
    (glance,), every = rows(text, GLANCE), rows(text, TRIALS)
    assert glance["interval (coverage)"] == "800.00 to 804.00 (75.00%)"
    assert (glance["spread"], glance["trials"]) == ("0.5%", "3/5")
    assert (every[1]["images/s"], every[1]["state"]) == ("n/a", "failed")
    meaning = "PROGRAM-FAILED (the program failed)"
    assert every[1]["problems and marks"] == f"{meaning}: node vs001, node\\_rank 0: exit status 1"


def test_trials_that_were_not_run_are_one_line() -> None:
    """A sweep that was stopped early does not fill a page with the same word."""
    (only,) = results({"1x1": (800.0, None, None)})
    trials = (only.trials[0], *map(unrun, only.trials[1:]))
    text = report.markdown(sweep((replace(only, trials=trials),)))
    assert (
        r"- **does not count: MISSING (not run, or without a log)**: 1n1g-r50\_b256\_amp\_2: "
        in text
    )
    assert r"; also 1n1g-r50\_b256\_amp\_3" in text
    assert text.count("MISSING (not run, or without a log)**:") == 1


def test_marks_are_shown_with_their_reason() -> None:
    """An implausible case and a trial with a gap count, and say so."""
    one, more = results({"1x1": (800.0,), "1x4": (4000.0,)})
    gap = Problem("GAP", "3.1 s between iterations 62 and 63")
    marked = replace(more, trials=(replace(more.trials[0], marks=(gap,)),))
    text = report.markdown(sweep((one, marked)))
    row = rows(text, GLANCE)[1]
    meaning = "IMPLAUSIBLE (more than the hardware can give)"
    said = "efficiency 1.250: more than 4 ranks can give; look at the 1x1 case"
    assert (row["case"], row["images/s"], row["speedup"]) == ("1x4", "4000.00", "5.00")
    assert (row["efficiency"], row["marks"]) == ("125.0%", f"{meaning}: {said}")
    assert f"{meaning}**: 1x4: {said}" in text
    words = "GAP (an iteration in the window was unusually slow)"
    assert rows(text, TRIALS)[1]["problems and marks"] == f"{words}: {gap.message}"
    assert "INCOMPLETE" not in text


def test_absent_speedup_says_what_is_missing() -> None:
    """Without a valid 1n1g, never 1.00; and a case without a number does not blame the 1n1g."""
    alone, failed = {"1x4": (3137.44,)}, {"1x1": (802.9,), "4x8": (None,)}
    (row,) = rows(report.markdown(sweep(results(alone))), GLANCE)
    assert (row["speedup"], row["efficiency"]) == ("n/a (no valid 1x1)", "n/a")
    _, row = rows(report.markdown(sweep(results(failed))), GLANCE)
    assert [*row.values()] == ["4x8", *["n/a"] * 5, "0/5"]


def test_cases_that_differ_in_more_than_placement_say_in_what() -> None:
    """In their names, which are explained below the table."""
    amp = results({"1x1": (800.0,), "1x4": (3000.0,)})
    fp32 = results({"1x1": (367.29,)}, precision="fp32", micro_batch_size=128)
    split = results(
        {"1x4": (2000.0,)}, accumulation_steps=2, tensor_parallel=4, pipeline_parallel=1
    )
    said = section(report.markdown(sweep((*amp, *fp32, *split))), GLANCE)
    one, two = "accumulation_steps=1, tensor_parallel=1", "accumulation_steps=2, tensor_parallel=4"
    names = [f"AMP(BS=256, {one})", f"FP32(BS=128, {one})", f"AMP(BS=256, {two})"]
    settings = [line for line in said.replace("\\", "").splitlines() if line.startswith("- ")]
    assert settings == [
        f"- {names[0]}: AMP, batch size 256, on cuda",
        f"- {names[1]}: FP32, batch size 128, on cuda",
        f"- {names[2]}: AMP, batch size 256, on cuda, accumulation_steps 2, tensor_parallel 4",
    ]
    (table,) = tables(said.replace("\\", ""))
    assert [row[0].partition(" ")[2] for row in table[1:]] == [names[0], *names]


def test_logs_of_no_case_have_a_table_by_their_own_headers() -> None:
    """What a header does not say is a question mark, and what cannot be measured is n/a."""
    bare = replace(LOG, config={}, rate=None, rule="reported", window=None)
    problem = Problem("WINDOW", "the window 25-125 needs iteration 125")
    found = folder(LoneLog("gpu8.txt", LOG, 6098.37, ()), LoneLog("b.txt", bare, None, (problem,)))
    text, meaning = report.markdown(found), "WINDOW (the log does not cover the window)"
    (logs,) = tables(section(text, "Logs"))
    assert logs == [
        [
            *("log", "ranks", "batch size", "precision", "images/s", "mean of printed"),
            *("measured by", "problems and marks"),
        ],
        ["1", "8", "128", "amp", "6098.37", "6011.64", "clock 20-60", ""],
        ["2", "?", "?", "?", "n/a", "n/a", "reported", f"{meaning}: {problem.message}"],
    ]
    assert f"\n- 1: gpu8.txt, sha256 {SHA256[:12]}\n- 2: b.txt, sha256 {SHA256[:12]}\n" in text
    assert "- Throughput of a log: by what the log is" in text
    assert found.incomplete == 1
    assert "## Cases at a glance" not in text
    assert "Image" not in text


def test_a_terminal_has_the_same_cells_with_codes_alone() -> None:
    """Settings that all cases share stand in the title; of lone logs, their paths."""
    gap = Problem("GAP", "iteration 63 took 2.804 s")
    first, *others = results(SEED_AMP)
    (title, head, cells), lone = report.terminal_tables(
        sweep((replace(first, marks=(gap,)), *others))
    )
    glance = tables(section(report.markdown(sweep((first, *others))), GLANCE))[0]
    assert title.endswith(" (AMP, batch size 256, on cuda)")
    assert [head, *cells] == [
        [*glance[0], "marks"],
        [*glance[1], "GAP"],
        *([*row, ""] for row in glance[2:]),
    ]
    assert lone[2] == []
    mixed = (first, *results({"1x1": (367.29,)}, precision="fp32"))
    (title, _, cells), _ = report.terminal_tables(sweep(mixed))
    assert "(" not in title
    assert [row[0] for row in cells] == ["1x1 AMP(BS=256)", "1x1 FP32(BS=256)"]
    problem = Problem("WINDOW", "the window 25-125 needs iteration 125")
    _, (title, head, cells) = report.terminal_tables(
        folder(LoneLog("a\nb.txt", LOG, 6098.37, (problem, gap)))
    )
    assert title.startswith("Logs in ")
    assert (head[-2:], cells[0][-2:]) == (["problems", "log"], ["WINDOW GAP", "a\\nb.txt"])


def test_names_from_outside_are_shown_and_not_obeyed() -> None:
    """Neither Markdown nor HTML nor a terminal takes a name, a header or a message for its own."""
    config = {"precision": HOSTILE}
    lone = LoneLog(HOSTILE, replace(LOG, config=config), None, (Problem("WINDOW", HOSTILE),))
    (only,) = results({"1x1": (None,)}, device=HOSTILE)
    failed = replace(
        only.trials[0],
        trial=HOSTILE,
        problems=(Problem("PROGRAM-FAILED", HOSTILE),),
        path=HOSTILE,
        log=replace(LOG, lines=None),
    )
    hostile = replace(only, trials=(failed,))
    found = sweep((hostile,), title=HOSTILE, source=HOSTILE, lone=(lone,))
    found = replace(
        found,
        environment={HOSTILE: {"system": HOSTILE}},
        topologies={HOSTILE: f"GPU0 ```{HOSTILE}".replace("\n", " ")},
        published={only.case: (replace(PUBLISHED, framework=HOSTILE, source=HOSTILE),)},
        names={only.case: HOSTILE},
    )
    text = report.markdown(found)
    assert HOSTILE not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert f"# {HARMLESS}\n" in text
    assert f"- Measured from: {HARMLESS}\n" in text
    assert f"| PROGRAM-FAILED (the program failed): {HARMLESS} |" in text
    assert f"| WINDOW (the log does not cover the window): {HARMLESS} |" in text
    assert text.count("```") == 2
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1


def test_transport_stands_in_every_row() -> None:
    """What a gang ran over is seen per case, per trial and per log, where any says it."""
    one, two = results({"1x1": (800.0,), "2x8": (11991.94, 9000.0)})
    fast, slow = two.trials
    both = (
        replace(fast, transport="IB mlx5_0"),
        replace(slow, state="invalid", transport="Socket ib0"),
    )
    said = sweep((one, replace(two, trials=both)))
    text = report.markdown(said)
    shown = [[row["transport"] for row in rows(text, name)] for name in (GLANCE, TRIALS)]
    assert shown == [["-", r"IB mlx5\_0"], ["-", r"IB mlx5\_0", "Socket ib0"]]
    fabric = Fabric(networks=("IB",), ports=(Port("mlx5_0", 1, "IB"),))
    lone = LoneLog("r0.log", replace(LOG, fabric=fabric), 800.0, ())
    (log,) = rows(report.markdown(folder(lone)), "Logs")
    assert log["transport"] == r"IB mlx5\_0"


def test_case_without_a_valid_trial_says_what_its_trials_ran_over() -> None:
    """The reason is seen in the table where a case has no number."""
    (two,) = results({"2x8": (11991.94, 9000.0)})
    trials = [
        replace(trial, state="invalid", transport=transport)
        for trial, transport in zip(two.trials, ("Socket ib0", "-"), strict=True)
    ]
    assert replace(two, trials=tuple(trials)).transport == "Socket ib0"


def test_trials_planned_are_those_that_are_there_where_no_plan_says() -> None:
    """A folder of three logs of a case promises three."""
    found = folder(found=results({"1x1": (800.0, None, 804.0)}))
    assert labels.of_trials(found, found.results[0]) == "2/3"


def test_published_results_stand_beside_what_was_measured() -> None:
    """The first beside its case, all with source and difference in a table of their own."""
    found = sweep(results({"1x1": (802.9,), "2x8": (None,), "4x8": (24806.276,)}))
    one, two, four = (result.case for result in found.results)
    older = replace(PUBLISHED, framework="ngc-pytorch-2023", throughput=21259.81, source="Perf")
    known = {four: (PUBLISHED, older), two: (replace(PUBLISHED, throughput=11991.94),)}
    text = report.markdown(replace(found, published=known, names={four: "largest"}))
    glance, _ = tables(section(text, GLANCE))
    assert glance[0][-1] == "published"
    assert [row[-1] for row in glance[1:]] == [
        *("", f"11991.94 (ngc-pytorch, {HARDWARE}), n/a"),
        f"22551.16 (ngc-pytorch, {HARDWARE}), +10.0%",
    ]
    (every,) = tables(section(text, "Published results"))
    assert every == [
        [
            *("case", "batch size", "precision", "measured", "published"),
            *("difference", "source"),
        ],
        [
            *("2x8", "256", "amp-dynamic", "n/a", f"11991.94 (ngc-pytorch, {HARDWARE})"),
            *("n/a", "DLPerf README"),
        ],
        [
            *("largest", "256", "amp-dynamic", "24806.28"),
            *(f"22551.16 (ngc-pytorch, {HARDWARE})", "+10.0%", "DLPerf README"),
        ],
        [
            *("largest", "256", "amp-dynamic", "24806.28"),
            *(f"21259.81 (ngc-pytorch-2023, {HARDWARE})", "+16.7%", "Perf"),
        ],
    ]
    assert "- Published: what others measured on the GPUs that are named" in text
    assert "The GPUs that wrote these logs are not known." in text
    known_gpus = report.markdown(replace(found, published=known, gpus=("V100-SXM2-16GB",)))
    assert "- Published: what others measured on the GPUs that are named" in known_gpus
    assert "are not known" not in known_gpus
    assert one not in known
    assert "ublished results" not in report.markdown(found)
    assert "- Published" not in report.markdown(found)


def test_no_difference_has_no_sign_of_its_own() -> None:
    """What is a ten-thousandth of a percent less is not shown as -0.0%."""
    found = sweep(results({"4x8": (22551.1599,)}))
    text = report.markdown(replace(found, published={found.results[0].case: (PUBLISHED,)}))
    assert "| +0.0% |" in text


def test_layout_gives_decimals() -> None:
    """OneFlow's documents print one."""
    text = report.markdown(sweep(results(SEED_AMP), layout=Layout(decimals=1)))
    assert [rows(text, name)[0]["images/s"] for name in (GLANCE, TRIALS)] == ["802.9", "803.7"]
