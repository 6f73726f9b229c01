"""The counts over all cells of measured pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pairs_fakes import entry, written

from benchmarks.pairs_counts import counts
from benchmarks.pairs_rows import load

HELD, DEFAULT = "miriam-measured:budget=0", "miriam-measured:budget=0.1"


def counted(folder: Path, *rows: dict[str, Any]) -> dict[str, str]:
    lines = "\n".join(counts(load([written(folder, "a.json", list(rows))]).cells)).splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {what: count for what, count in table[1:]}


def test_a_setting_or_the_default_is_on_the_frontier(tmp_path: Path) -> None:
    """In one cell a gate beats the default, in the other the default all."""
    found = counted(
        tmp_path,
        entry(HELD, 1.0, 1.0, 0.2),
        entry(DEFAULT, 1.2, 1.2, 0.3),
        entry("gate", 1.1, 1.1, 0.4),
        entry(DEFAULT, 1.0, 1.0, 0.5, 4_000.0),
        entry("gate", 1.1, 1.1, 0.4, 4_000.0),
    )
    assert found["on the frontier: a setting"] == "2 of 2"
    assert found[f"on the frontier: `{DEFAULT}`"] == "1 of 2"
    assert found["on the frontier: `gate`"] == "1 of 2"
    assert found["on the frontier: `multistream`"] == "0 of 0"


@pytest.mark.parametrize(
    ("other", "tail", "h", "small", "gates", "above"),
    [
        ("gate", 1.1, 0.46, 1, 1, 0),
        ("tally", 1.1, 0.46, 1, 0, 0),
        ("gate", 1.1, 0.44, 0, 0, 0),
        ("partition", 1.25, 0.53, 0, 0, 1),
        ("partition", 1.25, 0.51, 0, 0, 0),
        ("partition", 1.35, 0.9, 0, 0, 0),
    ],
)
def test_a_win_may_be_small_or_end_just_above_the_bound(
    tmp_path: Path, other: str, tail: float, h: float, small: int, gates: int, above: int
) -> None:
    found = counted(tmp_path, entry(DEFAULT, 1.1, 1.15, 0.5), entry(other, 1.1, tail, h))
    assert found["wins within 1.2 x alone by 0.05 of H or less"] == f"{small} of 1"
    assert found["those of them in which a gate is so near"] == str(gates)
    beyond = "wins beside others with a p99 of up to 1.3 and H more than 0.02 higher"
    assert found[beyond] == f"{above} of 1"


def test_a_cell_of_captured_networks_is_one_of_both(tmp_path: Path) -> None:
    rows = []
    for sms, critical, normal in ((8, "torch:a", "torch:b"), (16, "a", "b")):
        row = entry(DEFAULT, 1.0, 1.0, 0.5, world=f"cuda:0:{sms}")
        row["critical"]["task"], row["normal"][0]["task"] = critical, normal
        rows.append(row)
    assert counted(tmp_path, *rows)["wins of captured networks"] == "1 of 2"


def test_the_default_and_the_best_setting_stand_beside_the_gate(tmp_path: Path) -> None:
    """`miriam` is none of the settings."""
    found = counted(
        tmp_path,
        entry("gate", 1.0, 1.2, 0.4),
        entry("miriam", 1.0, 1.0, 0.4),
        entry(HELD, 1.0, 1.1, 0.3),
        entry(DEFAULT, 1.0, 1.2, 0.4),
        entry("gate", 1.0, 1.2, 0.4, 4_000.0),
        entry("miriam", 1.0, 1.0, 0.4, 4_000.0),
        entry(DEFAULT, 1.0, 1.3, 0.5, 4_000.0),
    )
    assert found["p99 lower than under `gate`: the default"] == "0 of 2"
    assert found["p99 lower than under `gate`: a setting"] == "1 of 2"
    assert found["the default at least as good as the gate in p99 and H"] == "1 of 2"


def test_budgets_are_over_what_they_are_said_to_be_over(tmp_path: Path) -> None:
    """Over the row with all held 1.25 and 1.04, over the floor 1.36 and 1.14."""
    found = counted(
        tmp_path,
        entry(HELD, 1.0, 1.2, 0.2),
        entry("sequential", 1.0, 1.1, 0.2),
        entry("miriam-measured:budget=0.2", 1.0, 1.5, 0.4),
        entry("miriam-measured:budget=0.05", 1.0, 1.25, 0.3),
        entry("miriam-measured:budget=1", 1.0, 1.1, 0.3),
    )
    kept = "p99 within a budget of 0.2 or less over that"
    assert found[f"{kept} of the row with all held"] == "1 of 2"
    assert found[f"{kept} of the floor"] == "0 of 2"
    assert found[f"{kept} alone"] == "0 of 2"


def test_targets_are_reached_by_a_setting_the_default_or_a_gate(tmp_path: Path) -> None:
    """`miriam` reaches it and is none of them; another closed loop has no baseline above."""
    found = counted(
        tmp_path,
        entry("miriam", 1.0, 1.0, 1.0, 4_000.0),
        entry(HELD, 1.0, 1.05, 0.97, 4_000.0),
        entry(DEFAULT, 1.0, 1.2, 1.0, 4_000.0),
        entry("gate:yield_share=0.05", 1.0, 1.1, 0.97, 4_000.0),
        entry(DEFAULT, 1.0, 1.0, 0.3),
        entry("multistream", 1.0, 1.0, 0.33),
        entry(DEFAULT, 1.0, 1.0, 0.3, world="cuda:0:8"),
        entry("multistream", 1.0, 1.0, 0.31, world="cuda:0:8"),
    )
    for who, count in (("a setting", 1), ("the default", 0), ("a gate", 1)):
        assert found[f"the target for gaps of 4 ms reached by {who}"] == f"{count} of 1"
    assert found["closed loops in which a baseline is more than 0.02 above ours"] == "1 of 2"
