"""The page of measured pairs: merging, ratios, the frontier, and verdicts that follow from rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from bench_fakes import tiny_program
from pairs_fakes import ASKED, CLOSED, entry, line, rows_of, written

from benchmarks.elastic_share_gpu import share
from benchmarks.mdtb_page import load as load_studies
from benchmarks.mdtb_page import page as page_of_studies
from benchmarks.pairs_chart import overhead_against_rate
from benchmarks.pairs_headline import BEGIN, END, headline, replaced
from benchmarks.pairs_page import page
from benchmarks.pairs_rows import SHARES, Merged, floor, frontier, load
from benchmarks.pairs_wins import best_within, only_default, winner
from miriam import devices
from miriam.bench.charts.style import colour
from miriam.coordinator import Task, policies
from miriam.kernels import GpuSpec

SPARSE = [
    entry("miriam", 1.05, 1.08, 0.95, 4_000.0, yield_p99_us=12.34),
    entry("gate", 1.04, 1.05, 0.96, 4_000.0),
    entry("multistream", 1.6, 2.0, 0.97, 4_000.0),
]


@pytest.fixture
def merged(tmp_path: Path) -> Merged:
    return load([written(tmp_path, "a.json", CLOSED), written(tmp_path, "b.json", SPARSE)])


def test_a_cell_that_is_in_two_reports_is_refused(tmp_path: Path) -> None:
    first = written(tmp_path, "a.json", CLOSED)
    again = written(tmp_path, "b.json", [entry("tally", 1.5, 2.0, 0.2)], date="2026-12-01")
    with pytest.raises(SystemExit, match=r"b.json: c \+ n, 32 SMs, closed loop is in .*a.json too"):
        load([first, again])
    with pytest.raises(SystemExit, match="leave one of them out"):
        load([first, first])
    elsewhere = written(tmp_path, "c.json", [entry("gate", 1.5, 2.0, 0.2, world="cuda:0:8")])
    assert [len(rows) for rows in load([first, elsewhere]).cells.values()] == [5, 1]


def test_mps_has_its_own_report_and_joins_its_cell(tmp_path: Path) -> None:
    mps: dict[str, Any] = {"worlds": [], "reason": None, "arguments": ""}
    rows = [entry("mps", 1.3, 1.4, 0.8)]
    files = [written(tmp_path, "a.json", CLOSED), written(tmp_path, "m.json", rows, mps=mps)]
    merged = load(files)
    (cell,) = merged.cells.values()
    assert [row.policy for row in cell][-1] == "mps"
    assert "G, from data/a.json, data/m.json." in page(merged)
    with pytest.raises(SystemExit, match="leave one of them out"):
        load([*files, written(tmp_path, "n.json", rows, mps=mps)])


def test_the_page_has_the_commands_that_make_it_again(merged: Merged) -> None:
    text = page(merged).replace("\\\n        ", "")
    command = "--pair c+n --gap-us 0,4000 --world 0,32 --policy miriam,gate --seconds 5"
    assert f"    miriam bench pairs --device cuda:0 {command} --in-flight 4 --seed 1" in text


def test_of_rest_takes_the_duty_from_the_service_alone(merged: Merged) -> None:
    sparse = next(row for row in merged.rows if row.cell.gap_us and row.policy == "miriam")
    assert sparse.duty == pytest.approx(100 / 4_200)
    assert sparse.of_rest == pytest.approx(0.95 / (1 - 100 / 4_200))
    assert all(row.of_rest is None for row in merged.rows if not row.cell.gap_us)


def test_the_frontier_holds_what_nothing_beats_and_leaves_sequential_out(merged: Merged) -> None:
    closed, sparse = merged.cells.values()
    names = ["miriam", "miriam:budget=0.2", "multistream"]
    assert [row.policy for row in frontier(closed)] == names
    assert [row.policy for row in frontier(sparse, tail=True)] == ["gate", "multistream"]


def test_best_within_a_bound_is_the_highest_rate_whose_p99_keeps_it(merged: Merged) -> None:
    closed, sparse = merged.cells.values()
    assert [winner(closed, bound) for bound in (1.1, 1.2, 1.3, 2.0)] == [
        "none",
        "miriam",
        "miriam",
        "multistream",
    ]
    best = best_within(closed, 1.3)
    assert best is not None and best.policy == "miriam:budget=0.2"
    assert [winner(sparse, bound) for bound in (1.05, 1.1, 2.0)] == ["gate", "gate", "multistream"]


def test_of_policies_that_bring_the_same_the_simplest_is_best(tmp_path: Path) -> None:
    own = entry("miriam-measured:budget=0.1", 1.0, 1.0, 0.519)
    host, split = entry("miriam-host", 1.0, 1.0, 0.5), entry("partition", 1.0, 1.0, 0.5)
    gate, streams = entry("gate", 1.0, 1.0, 0.5), entry("multistream", 1.0, 1.0, 0.5)
    assert winner(rows_of(tmp_path, own), 1.1) == "miriam"
    assert winner(rows_of(tmp_path, own, host), 1.1) == "other"
    assert "- another policy is best: miriam-host in 1." in page(load([tmp_path / "rows.json"]))
    assert winner(rows_of(tmp_path, own, gate, split), 1.1) == "gate"
    assert winner(rows_of(tmp_path, own, gate, streams), 1.1) == "multistream"
    more = own | {"normal": [{"task": "n", "H": 0.52}]}
    assert winner(rows_of(tmp_path, more, host, gate, streams), 1.1) == "miriam"


def test_the_page_begins_with_who_wins_where(merged: Merged) -> None:
    text = page(merged)
    assert text.index("## Who wins where") < text.index("](pairs-h200.png)")
    counted = "| 0 / 1 / 1 | 0 / 0 / 0 | 0 / 0 / 0 | 0 / 0 / 0 | 1 / 0 / 0 |"
    assert f"| 32 SMs | closed loop | 1 {counted}" in text
    assert "| all | all | 2 | 0 / 1 / 1 | 1 / 1 / 1 |" in text
    assert "Rows have 1000 to 1000 critical requests, and in 0 of 2 cells the latency alone" in text
    assert "- Miriam wins: 32 SMs, closed loop (c + n)." in text
    assert "- a plain gate is enough: 32 SMs, 4 ms (c + n)." in text
    assert "- multi-stream is the better choice: nowhere." in text
    named = "none | miriam 0.30 | miriam:budget=0.2 0.55"
    assert f"| 32 SMs | closed loop | c + n | 1.00, 1.00 | {named} |" in text
    assert "| 32 SMs | 4 ms | c + n | - | gate 0.96 | gate 0.96 | gate 0.96 |" in text
    points = "miriam (1.10, 0.30), miriam:budget=0.2 (1.18, 0.55), multistream (1.60, 0.90)"
    assert f"| 32 SMs | closed loop | c + n | 1.00 | {points} |" in text


def test_each_target_says_what_was_measured_and_whether_it_is_reached(merged: Merged) -> None:
    text = page(merged)
    assert "| miriam 1.080, 0.973 | reached |  | gate 1.050, 0.983" in line(
        text, "H / (1 - duty) >="
    )
    above = line(text, "miriam's frontier at least")
    measured = "so it is for 1 of 2, level with 0"
    assert f"| {measured} | **missed** |  | below multistream (1.60, 0.90) |" in above
    below = line(text, "below the gate's")
    assert "| 1 of 2 cells, 1 of them with at least its H | **missed** |" in below
    assert "| not run |" in line(text, "miriam-host")
    assert "| 8 rows, 0 not verified | **missed** |" in line(text, "at least 150 rows")


@pytest.mark.parametrize(
    ("over", "h", "verdict"),
    [(1.19, 0.5, "reached"), (1.19, 0.49, "**missed**"), (1.21, 0.6, "**missed**")],
)
def test_the_budget_is_judged_on_the_plan_that_was_measured_for_it(
    tmp_path: Path, over: float, h: float, verdict: str
) -> None:
    measured = entry("miriam-measured:budget=0.2", over, over, h)
    split = entry("partition", 1.17, 1.2, 0.34)
    text = page(load([written(tmp_path, "a.json", [*CLOSED, measured, split])]))
    said = (
        f"miriam-measured:budget=0.2 ({over:.2f}, {h:.2f}) | {verdict} | 1.00, {over:.2f} over it"
    )
    most = "most: 1.52 (multistream), wanted 1.33"
    assert f"| {said} | partition (1.17, 0.34); {most} |" in line(text, "at a budget of 20%")
    without = page(load([written(tmp_path, "b.json", [*CLOSED, split])]))
    assert "| not run |  |  | partition (1.17, 0.34); most: 1.52 (multistream)" in without


def test_a_floor_is_the_service_of_sequential_and_says_which_misses_it_explains(
    tmp_path: Path,
) -> None:
    lowest = entry("sequential", 1.2, 1.25, 0.5, 4_000.0)
    own = entry("miriam-measured:budget=0.05", 1.26, 1.3, 0.96, 4_000.0)
    gate = entry("gate", 1.3, 1.4, 0.9, 4_000.0, yield_p99_us=60.0)
    merged = load([written(tmp_path, "a.json", [own, lowest, gate])])
    text = page(merged)
    leaves = "leaves within 60 us (gate), 60% of the service"
    over = f"| **missed** | 1.25, 1.04 over it, miss in the floor; {leaves} |"
    assert over in line(text, "H / (1 - duty) >=")
    assert "| c + n | miriam-measured:budget=0.05 | 1.26 | 1.30 | 1.05 | 1.04 |" in text
    assert "| 32 SMs | 4 ms | c + n | 1.20, 1.25 | none | none |" in text
    found = floor(merged.rows)
    assert found is not None and found.policy == "sequential"
    wrong = lowest | {"verified": False}
    assert floor(load([written(tmp_path, "b.json", [own, wrong])]).rows) is None


def test_the_papers_form_and_the_ablations_are_not_judged_as_miriam(tmp_path: Path) -> None:
    names = (
        "miriam",
        "miriam:budget=0",
        "miriam-measured:budget=0.1",
        "miriam-host",
        "miriam-grid",
    )
    rows = rows_of(tmp_path, *(entry(name, 1.0, 1.0, 0.5) for name in names))
    assert [row.own for row in rows] == [True, True, True, False, False]


def test_what_the_papers_form_brings_stands_beside_miriam(tmp_path: Path) -> None:
    own, host = ("miriam", 1.1, 1.2), ("miriam-host", 1.0, 1.05)
    cells = [
        entry(*policy, h - less, gap_us)
        for gap_us, h in ((0.0, 0.3), (4_000.0, 0.5))
        for policy, less in ((own, 0.0), (host, 0.2))
    ]
    text = page(load([written(tmp_path, "a.json", cells)]))
    said = line(text, "miriam against miriam-host")
    assert "| lower p99 in 0, higher H in 2 of 2 cells |" in said
    assert "| medians miriam 1.20, 0.40, miriam-host 1.05, 0.20 |" in said


def test_names_of_captured_networks_are_as_they_were_given(tmp_path: Path) -> None:
    torch = entry("miriam-measured:budget=0.1", 1.1, 1.15, 0.5)
    torch["critical"]["task"] = "torch:resnet18"
    torch["normal"][0]["task"] = "torch:vgg16@4"
    options = ASKED | {"workloads": ["torch:resnet18+torch:vgg16@4"]}
    merged = load([written(tmp_path, "a.json", [torch], options=options)])
    text = page(merged)
    assert "| torch:resnet18 + torch:vgg16@4 | - | none | miriam-measured:budget=0.1 0.50 |" in text
    assert "--pair torch:resnet18+torch:vgg16@4" in text
    assert overhead_against_rate(merged.cells, "G", tail=True).startswith(b"\x89PNG")


def test_the_share_of_elastic_steps_is_a_target(tmp_path: Path) -> None:
    found = share(gpu("h200"), tasks(), ((30_000,), (30_000,)))
    assert (found.steps, found.elastic_steps, found.elastic_us) == (1, 1, 30)
    short = share(gpu("h200"), tasks(), ((30_000,), (1_000,)))
    shares = tmp_path / "s.json"
    shares.write_text(json.dumps({"schema": SHARES, "rows": [asdict(found), asdict(short)]}))
    text = page(load([written(tmp_path, "a.json", CLOSED), shares]))
    assert "| c + n, 132 SMs | 100%, 1 of 1 steps | reached |" in text
    assert "| c + n, 132 SMs | 0%, 0 of 1 steps | **missed** |" in text


def tasks() -> tuple[Task, Task]:
    return Task("c", tiny_program("c"), critical=True), Task("n", tiny_program("n"))


def gpu(name: str) -> GpuSpec:
    return devices.get(f"sim:{name}").gpu


def test_a_row_shows_its_figures_and_an_output_that_was_wrong(tmp_path: Path) -> None:
    wrong = entry("gate", 1.04, 1.05, 0.96, 4_000.0, verified=False)
    text = page(load([written(tmp_path, "a.json", [SPARSE[0], wrong])]))
    numbers = "1.05 | 1.08 | - | - | 1.05 | 1.08 | 0.95 | 0.97 | 12.3 | 1000 | 1 % | yes | x |"
    assert f"| c + n | miriam | {numbers}" in text
    assert line(text, "|  | gate |").endswith("| **NO** |  |")
    assert "2 rows, 1 not verified" in text


def test_a_policy_that_completed_nothing_is_no_point(tmp_path: Path) -> None:
    nothing = entry("vacate", 1.0, 1.0, 0.5)
    nothing["critical"] |= dict.fromkeys(("p50_us", "p99_us", "service_p50_us", "service_p99_us"))
    found = load([written(tmp_path, "a.json", [*CLOSED, nothing])])
    assert "| vacate | - | - | - | - | - | - | 0.50 |" in page(found)
    assert "vacate" not in [row.policy for row in frontier(found.rows)]


def test_mps_says_which_sms_were_shared_or_why_it_is_not_there(tmp_path: Path) -> None:
    seen = {"critical_sms": 132, "normal_sms": 132, "shared_sms": 130}
    whole = seen | {"world": "cuda:0", "percentage": None}
    part = seen | {"world": "cuda:0:32", "percentage": 25}
    mps = {"worlds": [whole, part], "reason": None, "arguments": "--seconds 1"}
    measured = [entry("mps", 1.3, 1.4, 0.8, world="cuda:0"), entry("mps", 1.0, 1.0, 0.9)]
    merged = load([written(tmp_path, "a.json", measured, mps=mps)])
    assert [(row.cell.sms, row.H) for row in merged.rows] == [(None, 0.8)]
    text = page(merged)
    assert "cuda:0: 132 and 132 SMs seen to run blocks, 130 of them by both." in text
    assert "    python -m benchmarks.mps_gpu docs/results/data/a.json --seconds 1" in text
    absent = written(
        tmp_path, "b.json", [], mps={"worlds": [], "reason": "no daemon", "arguments": ""}
    )
    text = page(load([written(tmp_path, "c.json", CLOSED), absent]))
    assert "- `mps` is not there: no daemon\n" in text


def test_a_report_that_is_simulated_or_too_old_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="a run on a GPU is wanted"):
        load([written(tmp_path, "a.json", CLOSED, simulated=True)])
    old = entry("gate", 1.0, 1.0, 0.5)
    del old["critical"]["solo_service_p99_us"]
    with pytest.raises(SystemExit, match="no solo_service_p99_us; run it again"):
        load([written(tmp_path, "a.json", [old])])


def test_a_task_that_completed_nothing_alone_is_an_error(tmp_path: Path) -> None:
    nothing = entry("gate", 1.0, 1.0, 0.5, normal=[{"task": "n", "H": None}])
    with pytest.raises(SystemExit, match=r"c\+n, gate: a task completed nothing alone"):
        load([written(tmp_path, "a.json", [nothing])])


@pytest.mark.parametrize("tail", [False, True])
def test_the_chart_is_a_png(merged: Merged, tail: bool) -> None:
    assert overhead_against_rate(merged.cells, "G", tail=tail).startswith(b"\x89PNG")


def test_every_policy_has_a_colour_of_its_own() -> None:
    known = [*policies.names(), "miriam-measured", "mps"]
    colours = {name: colour(name) for name in known}
    assert len(set(colours.values())) == len(colours)
    assert colour("no such policy") not in colours.values()


def test_the_headline_counts_cells_and_takes_medians_over_pairs(tmp_path: Path) -> None:
    other = [entry("miriam", 1.1, 1.6, 0.5, workload="d+n")]
    other[0]["critical"]["task"] = "d"
    text = headline(load([written(tmp_path, "a.json", [*CLOSED, *SPARSE, *other])]))
    assert "9 rows, 9 of them" in text
    assert "of 3 cells" in text
    assert "| 1.1 x alone | 0 | 1 | 0 | 0 | 2 |" in text
    assert "| 1.2 x alone | 1 | 1 | 0 | 0 | 1 |" in text
    assert "| closed loop | (pairs) | 1 |" in text
    assert "| closed loop | miriam | 1.20, 0.30 |" in text
    assert "| 4 ms | gate | 1.05, 0.96 |" in text


def test_the_headline_goes_between_its_marks() -> None:
    assert replaced(f"a\n{BEGIN}\nold\n{END}\nb\n", "new") == f"a\n{BEGIN}\nnew\n{END}\nb\n"
    with pytest.raises(SystemExit, match="each once"):
        replaced(f"{BEGIN} {BEGIN} {END}", "new")
    readme = Path(__file__).parents[2] / "README.md"
    assert "new" in replaced(readme.read_text(), "new")


def study(policy: str, world: str, latency: float | None, throughput: float) -> dict[str, Any]:
    row = entry(policy, 1.1, 1.2, 0.4, workload="A", world=world)
    row["critical"] |= {"requests": 77, "latency_vs_sequential": latency}
    extra = {"stp": 1.5, "throughput_vs_sequential": throughput, "achieved_occupancy": 0.25}
    return row | extra


def test_measured_workloads_stand_beside_the_papers_numbers(tmp_path: Path) -> None:
    options = ASKED | {"benchmark": "mdtb", "gaps_us": [], "worlds": []}
    first = written(tmp_path, "a.json", [study("miriam", "cuda:0:8", 1.25, 1.7)], options=options)
    second = written(tmp_path, "b.json", [study("miriam", "cuda:0", 1.05, 3.0)], options=options)
    text = page_of_studies(load_studies([first, second]))
    assert "| figure | paper, RTX 2060 | paper, Xavier | all SMs | 8 SMs |" in text
    assert "| A, critical latency, Miriam | 1.21x | 1.28x | 1.05x | 1.25x |" in text
    assert "| A, throughput, IB | below 1 | below 1 | - | - |" in text
    assert "| A: c + n | miriam | 1.25x | 1.10 | 1.20 | 1.10 | 1.20 | 77 | 0.40 | 1.70x |" in text
    assert "## MDTB, all SMs" in text
    few = study("miriam", "cuda:0", 1.05, 3.0)
    few["critical"]["requests"] = 29
    text = page_of_studies(load_studies([written(tmp_path, "c.json", [few], options=options)]))
    assert "| A, critical latency, Miriam | 1.21x | 1.28x | n = 29 |" in text


def test_reports_of_other_benchmarks_are_refused(tmp_path: Path) -> None:
    pairs = written(tmp_path, "a.json", CLOSED, options=ASKED)
    with pytest.raises(SystemExit, match="a report of mdtb, lgsvl, growth"):
        load_studies([pairs])


def test_what_later_changes_have_overtaken_stands_below_the_runs(tmp_path: Path) -> None:
    rows = [entry("gate", 1.0, 1.0, 0.5)]
    first = written(tmp_path, "a.json", rows, note="by older code.")
    second = written(tmp_path, "b.json", [{**rows[0], "world": "cuda:0:16"}], note="by older code.")
    third = written(tmp_path, "c.json", [{**rows[0], "world": "cuda:0:8"}])
    below = "\n*`data/a.json`, `data/b.json`: by older code.*"
    assert below in page(load([first, second, third]))


def test_what_the_default_alone_brings_is_said(tmp_path: Path) -> None:
    """The budget of 0.2 wins, the default does not."""
    rows = [
        entry("gate", 1.0, 1.0, 0.3),
        entry("miriam-measured:budget=0.1", 1.0, 1.0, 0.3),
        entry("miriam-measured:budget=0.2", 1.1, 1.1, 0.6),
    ]
    merged = load([written(tmp_path, "a.json", rows)])
    assert only_default(merged.cells).endswith(
        "With their defaults only, `miriam-measured:budget=0.1` and `gate`, and all others as "
        "before, Miriam wins in 0 / 0 / 0 of 1 cells and a gate is enough in 1 / 1 / 1."
    )
    assert winner(merged.rows, 1.2) == "miriam"
