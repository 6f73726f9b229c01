"""Rows of measured pairs, and reports of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.pairs_rows import Row, load


def entry(
    policy: str, over: float, tail: float, h: float, gap_us: float = 0.0, **other: Any
) -> dict[str, Any]:
    """A row: alone 200 us of which 100 us are service, p99 twice that."""
    critical = {
        "task": "c",
        "p50_us": 200.0 * over,
        "p99_us": 400.0 * tail,
        "service_p50_us": 100.0 * over,
        "service_p99_us": 200.0 * tail,
        "solo_p50_us": 200.0,
        "solo_p99_us": 400.0,
        "solo_service_p50_us": 100.0,
        "solo_service_p99_us": 200.0,
    }
    return {
        "workload": "c+n",
        "policy": policy,
        "critical": critical,
        "normal": [{"task": "n", "H": h}],
        "verified": True,
        "gap_us": gap_us,
        "world": "cuda:0:32",
        "n": 1_000,
        "drift": 0.01,
    } | other


ASKED: dict[str, Any] = {
    "benchmark": "pairs",
    "device": "cuda:0",
    "policies": ["miriam", "gate"],
    "seconds": 5.0,
    "seed": 1,
    "workloads": ["c+n"],
    "in_flight": 4,
    "gaps_us": [0.0, 4_000.0],
    "worlds": [0, 32],
}


def written(folder: Path, name: str, rows: list[dict[str, Any]], **other: Any) -> Path:
    report = {
        "schema": "miriam.bench/1",
        "simulated": False,
        "gpu": "G",
        "driver": {"name": "580.1", "cuda": 13000},
        "versions": {"miriam-gpu": "0.1.0"},
        "date": "2026-11-30",
        "clocks": {"clocks.sm": "1000", "clocks.max.sm": "2000"},
        "rows": rows,
        "options": ASKED,
    } | other
    path = folder / name
    path.write_text(json.dumps(report))
    return path


CLOSED = [
    entry("miriam", 1.1, 1.2, 0.3),
    entry("miriam:budget=0.2", 1.18, 1.3, 0.55),
    entry("gate", 1.2, 1.4, 0.2),
    entry("multistream", 1.6, 2.0, 0.9),
    entry("sequential", 1.0, 1.0, 0.95),
]


def line(text: str, *words: str) -> str:
    return next(x for x in text.splitlines() if all(word in x for word in words))


def rows_of(folder: Path, *entries: dict[str, Any]) -> list[Row]:
    return list(load([written(folder, "rows.json", list(entries))]).rows)
