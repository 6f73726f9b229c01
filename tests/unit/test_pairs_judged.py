"""Which rows of measured pairs are judged, and by what."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs_fakes import entry, line, rows_of, written

from benchmarks.pairs_page import page
from benchmarks.pairs_rows import frontier, load
from benchmarks.pairs_wins import winner


def test_h_is_the_mean_over_the_normal_tasks(tmp_path: Path) -> None:
    normal = [{"task": "n", "H": 0.2}, {"task": "m", "H": 0.4}]
    rows = rows_of(tmp_path, entry("gate", 1.0, 1.0, 0.0, normal=normal))
    assert {row.cell.pair: row.H for row in rows} == pytest.approx({"c + n, m": 0.3})


def test_the_frontier_is_by_the_percentile_that_is_asked_for(tmp_path: Path) -> None:
    """Rows that are the same in both are on it together."""
    rows = rows_of(
        tmp_path,
        entry("gate", 1.0, 2.0, 0.5),
        entry("vacate", 1.2, 1.5, 0.5),
        entry("partition", 1.2, 1.5, 0.5),
    )
    assert [row.policy for row in frontier(rows)] == ["gate"]
    assert [row.policy for row in frontier(rows, tail=True)] == ["vacate", "partition"]


@pytest.mark.parametrize("verified", [False, None])
def test_rows_whose_outputs_were_wrong_or_not_checked_are_never_judged(
    tmp_path: Path, verified: bool | None
) -> None:
    names = ("gate", "partition", "miriam", "miriam-host", "miriam-measured:budget=0.2")
    wrong = [entry(name, 1.0, 1.0, 0.9, verified=verified) for name in names]
    right = [entry("multistream", 1.5, 1.5, 0.6), entry("miriam:budget=0.3", 1.1, 1.2, 0.4)]
    merged = load([written(tmp_path, "a.json", [*wrong, *right])])
    text = page(merged)
    assert [row.policy for row in frontier(merged.rows)] == ["miriam:budget=0.3", "multistream"]
    assert winner(merged.rows, 1.1) == "none"
    assert "| no verified row of miriam-measured:budget=0.2 |  |  | most: 1.31" in text
    assert "| 0 of 0 cells, 0 of them" in line(text, "below the gate's")
    assert "| not run |" in line(text, "miriam against miriam-host")
    assert "| 7 rows, 5 not verified | **missed** |" in text


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "reached"), (1, "**missed**")])
def test_the_contract_is_kept_by_many_rows_that_are_all_right(
    tmp_path: Path, wrong: int, verdict: str
) -> None:
    rows = [entry("gate", 1.0, 1.0, 0.5, world=f"cuda:0:{sms}") for sms in range(1, 151)]
    rows[-1]["verified"] = not wrong
    text = page(load([written(tmp_path, "a.json", rows)]))
    assert f"| 150 rows, {wrong} not verified | {verdict} |" in text


def test_the_budget_is_judged_on_the_p50(tmp_path: Path) -> None:
    measured = entry("miriam-measured:budget=0.2", 1.19, 1.6, 0.5)
    text = page(load([written(tmp_path, "a.json", [measured])]))
    assert "miriam-measured:budget=0.2 (1.19, 0.50) | reached |" in line(text, "a budget of 20%")


def test_where_the_gate_keeps_the_p99_leaving_is_no_reason_to_miss_it(tmp_path: Path) -> None:
    own = entry("miriam", 1.05, 1.3, 0.96, 4_000.0)
    gate = entry("gate", 1.04, 1.08, 0.9, 4_000.0, yield_p99_us=60.0)
    wrong = entry("vacate", 1.5, 1.6, 0.9, 4_000.0, yield_p99_us=90.0, verified=False)
    text = page(load([written(tmp_path, "a.json", [wrong, own, gate])]))
    assert "leaves within" not in line(text, "H / (1 - duty) >=")


def test_another_policy_is_named_that_is_best_at_the_bound_of_the_list(tmp_path: Path) -> None:
    rows = [
        entry(name, 1.0, tail, h, world=f"cuda:0:{sms}")
        for sms, first in ((8, "tally"), (16, "vacate"), (32, "vacate"))
        for name, tail, h in ((first, 1.15, 0.5), ("orion", 1.4, 0.9))
    ]
    text = page(load([written(tmp_path, "a.json", rows)]))
    assert "- another policy is best: vacate in 2, tally in 1." in text


def test_a_task_that_completed_nothing_alone_is_named_also_if_critical(tmp_path: Path) -> None:
    nothing = entry("gate", 1.0, 1.0, 0.5)
    nothing["critical"]["solo_p50_us"] = None
    with pytest.raises(SystemExit, match=r"c\+n, gate: a task completed nothing alone"):
        load([written(tmp_path, "a.json", [nothing])])
