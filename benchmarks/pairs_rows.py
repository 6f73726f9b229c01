"""Rows of ``miriam bench pairs`` on a GPU, merged from several reports, and what follows from them.

A *cell* is a pair of networks, a world and a gap on one GPU on one day; its rows are the policies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLOSED_LOOP_US = 0.0
OWN = "miriam"
SHARES = "miriam.elastic_share/1"
QUEUED = "sequential"
"""It lets a critical request wait before its first kernel, which the service does not see."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is compared with each other. ``sms``: None for all SMs of the GPU."""

    gpu: str
    date: str
    sms: int | None
    gap_us: float
    pair: str

    @property
    def world(self) -> str:
        """The world, for people."""
        return "all SMs" if self.sms is None else f"{self.sms} SMs"

    @property
    def gap(self) -> str:
        """The gap, for people."""
        return gap_text(self.gap_us)


@dataclass(frozen=True, slots=True)
class Row:
    """A policy in a cell. Ratios are over the same percentile alone, None where nothing completed.

    ``p50``, ``p99``: of the latency. ``service50``, ``service99``: of the service. ``H``: mean over
    the normal tasks. ``duty``: share of the time that the critical task's service takes alone.
    """

    cell: Cell
    policy: str
    n: int
    p50: float | None
    p99: float | None
    service50: float | None
    service99: float | None
    H: float
    duty: float
    yield99_us: float | None
    drift: float | None
    verified: bool | None

    @property
    def own(self) -> bool:
        """Whether it is a row of the policy ``miriam``, with whatever settings."""
        return self.policy.partition(":")[0] == OWN

    @property
    def of_rest(self) -> float | None:
        """H / (1 - duty) where requests leave a gap: the share that was there to be had."""
        return None if self.cell.gap_us == CLOSED_LOOP_US else self.H / (1 - self.duty)

    @property
    def sum(self) -> float | None:
        """1 / (p50 of the service over alone) + H."""
        return None if self.service50 is None else 1 / self.service50 + self.H

    @property
    def placed(self) -> bool:
        """Whether it is judged: a point of the plane of service and H, all its outputs right."""
        return self.service50 is not None and self.policy != QUEUED and self.verified is True

    def service(self, *, tail: bool) -> float:
        """p99 or p50 of the service over the same alone, of a row that is placed."""
        value = self.service99 if tail else self.service50
        assert value is not None  # a row is placed if anything completed
        return value


@dataclass(frozen=True, slots=True)
class Merged:
    """All rows, cell by cell, and the reports that they come from, as JSON has them.

    ``shares``: what benchmarks.elastic_share_gpu found.
    """

    rows: tuple[Row, ...]
    reports: tuple[dict[str, Any], ...]
    replaced: int
    shares: tuple[dict[str, Any], ...] = ()

    @property
    def cells(self) -> dict[Cell, list[Row]]:
        """The rows of each cell: closed loops first, large worlds before small ones."""
        found: dict[Cell, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: _order(row.cell)):
            found.setdefault(row.cell, []).append(row)
        return found


def gap_text(gap_us: float) -> str:
    """A gap, for people."""
    return "closed loop" if gap_us == CLOSED_LOOP_US else f"{gap_us / 1_000:g} ms"


def load(paths: Iterable[Path]) -> Merged:
    """The rows of several reports; a row that occurs again replaces the earlier one.

    SystemExit for a report that is simulated, or older than the figures that are needed.
    """
    rows: dict[tuple[Cell, str], Row] = {}
    reports: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    seen = 0
    for path in paths:
        report = json.loads(path.read_text())
        if report["schema"] == SHARES:
            shares += report["rows"]
            continue
        if report["schema"] != "miriam.bench/1" or report["simulated"]:
            raise SystemExit(f"{path}: a report of a run on a GPU is wanted, schema miriam.bench/1")
        reports.append({**report, "file": path.name})
        for entry in report["rows"]:
            if "solo_service_p99_us" not in entry["critical"]:
                raise SystemExit(f"{path}: no solo_service_p99_us; run it again with this version")
            row = _row(report, entry)
            rows[row.cell, row.policy] = row
            seen += 1
    return Merged(tuple(rows.values()), tuple(reports), seen - len(rows), tuple(shares))


def frontier(rows: Sequence[Row], *, tail: bool = False) -> list[Row]:
    """The rows that no other one beats in both service and H, from the fastest one on.

    ``tail``: by the service's p99 instead of its p50.
    """
    points = [(row, (row.service(tail=tail), -row.H)) for row in rows if row.placed]
    kept = [
        (point, row)
        for row, point in points
        if not any(o[0] <= point[0] and o[1] <= point[1] and o != point for _, o in points)
    ]
    return [row for _, row in sorted(kept, key=lambda entry: entry[0])]


def _order(cell: Cell) -> tuple[object, ...]:
    return cell.gpu, cell.date, cell.gap_us, -(cell.sms or 1_000_000), cell.pair


def _row(report: dict[str, Any], entry: dict[str, Any]) -> Row:
    critical, normal = entry["critical"], entry["normal"]
    pair = f"{critical['task']} + {', '.join(task['task'] for task in normal)}"
    confined = entry["world"].split(":")[2:]
    sms = int(confined[0]) if confined else None
    cell = Cell(report["gpu"], report["date"], sms, entry["gap_us"], pair)
    if critical["solo_p50_us"] is None or any(task["H"] is None for task in normal):
        name = f"{entry['workload']}, {entry['policy']}"
        raise SystemExit(f"{name}: a task completed nothing alone; give rows more --seconds")
    alone_us = critical["solo_p50_us"] + entry["gap_us"]
    return Row(
        cell=cell,
        policy=entry["policy"],
        n=entry["n"],
        p50=_ratio(critical["p50_us"], critical["solo_p50_us"]),
        p99=_ratio(critical["p99_us"], critical["solo_p99_us"]),
        service50=_ratio(critical["service_p50_us"], critical["solo_service_p50_us"]),
        service99=_ratio(critical["service_p99_us"], critical["solo_service_p99_us"]),
        H=sum(task["H"] for task in normal) / len(normal),
        duty=critical["solo_service_p50_us"] / alone_us,
        yield99_us=entry.get("yield_p99_us"),
        drift=entry.get("drift"),
        verified=entry["verified"],
    )


def _ratio(value: float | None, alone: float) -> float | None:
    return None if value is None else value / alone
