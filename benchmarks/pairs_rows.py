"""Rows of ``miriam bench pairs`` on a GPU, merged from several reports, and what follows from them.

A *cell* is a pair of networks, a world and a gap on one GPU; its rows are the policies. All of them
come from one report, so that they were measured side by side; only `mps` has reports of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLOSED_LOOP_US = 0.0
OWN = ("miriam", "miriam-measured")
"""The policies that are judged as Miriam; `miriam-host` is the paper's form of it, others with such
a name are ablations."""

SHARES = "miriam.elastic_share/1"
QUEUED = "sequential"
"""It lets a critical request wait before its first kernel, which the service does not see. So its
service is the floor of a cell: nothing runs beside, and the caches are as normal work left them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is compared with each other. ``sms``: None for all SMs of the GPU."""

    gpu: str
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
    the normal tasks. ``duty``: share of the time that the critical task's service takes alone,
    and ``alone_us`` how long that is. ``file``: of its report.
    """

    cell: Cell
    file: str
    policy: str
    n: int
    p50: float | None
    p99: float | None
    service50: float | None
    service99: float | None
    H: float
    duty: float
    alone_us: float
    yield99_us: float | None
    drift: float | None
    verified: bool | None

    @property
    def base(self) -> str:
        """The policy's name without its settings."""
        return self.policy.partition(":")[0]

    @property
    def own(self) -> bool:
        """Whether it is judged as Miriam, with whatever settings."""
        return self.base in OWN

    @property
    def of_rest(self) -> float | None:
        """H / (1 - duty) where requests leave a gap: the share that was there to be had."""
        return None if self.cell.gap_us == CLOSED_LOOP_US else self.H / (1 - self.duty)

    @property
    def placed(self) -> bool:
        """Whether it is judged: a point of the plane of service and H, all its outputs right."""
        return self.service50 is not None and self.policy != QUEUED and self.verified is True

    def service(self, *, tail: bool) -> float:
        """p99 or p50 of the service over the same alone, of a row in which anything completed."""
        value = self.service99 if tail else self.service50
        assert value is not None  # so it is with rows that are placed, and with floors
        return value


@dataclass(frozen=True, slots=True)
class Merged:
    """All rows, cell by cell, and the reports that they come from, as JSON has them.

    ``shares``: what benchmarks.elastic_share_gpu found.
    """

    rows: tuple[Row, ...]
    reports: tuple[dict[str, Any], ...]
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
    """The rows of several reports.

    SystemExit for a report that is simulated, or older than the figures that are needed, and for a
    cell that occurs in two of them: ratios of two runs do not stand side by side.
    """
    rows: list[Row] = []
    reports: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    places: dict[tuple[Cell, bool], tuple[int, Path]] = {}
    for number, path in enumerate(paths):
        report = json.loads(path.read_text())
        if report["schema"] == SHARES:
            shares += report["rows"]
            continue
        if report["schema"] != "miriam.bench/1" or report["simulated"]:
            raise SystemExit(f"{path}: a report of a run on a GPU is wanted, schema miriam.bench/1")
        elsewhere = _elsewhere(report)
        kept = [entry for entry in report["rows"] if entry["world"] not in elsewhere]
        reports.append({**report, "file": path.name, "rows": kept})
        for entry in kept:
            if "solo_service_p99_us" not in entry["critical"]:
                raise SystemExit(f"{path}: no solo_service_p99_us; run it again with this version")
            row = _row(report, entry, path.name)
            first = places.setdefault((row.cell, "mps" in report), (number, path))
            if first[0] != number:
                where = f"{row.cell.pair}, {row.cell.world}, {row.cell.gap}"
                raise SystemExit(f"{path}: {where} is in {first[1]} too; leave one of them out")
            rows.append(row)
    return Merged(tuple(rows), tuple(reports), tuple(shares))


def _elsewhere(report: Mapping[str, Any]) -> set[str]:
    """Worlds of `mps` whose two processes may run on different SMs: no cell of this page."""
    worlds = report.get("mps", {}).get("worlds", [])
    return {world["world"] for world in worlds if world["percentage"] is not None}


def floor(rows: Sequence[Row]) -> Row | None:
    """The row of `sequential` in a cell, whose service is the floor; None if it was not run."""
    return next(
        (r for r in rows if r.policy == QUEUED and r.service50 is not None and r.verified is True),
        None,
    )


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
    return cell.gpu, cell.gap_us, -(cell.sms or 1_000_000), cell.pair


def _row(report: dict[str, Any], entry: dict[str, Any], file: str) -> Row:
    critical, normal = entry["critical"], entry["normal"]
    pair = f"{critical['task']} + {', '.join(task['task'] for task in normal)}"
    confined = entry["world"].split(":")[2:]
    sms = int(confined[0]) if confined else None
    cell = Cell(report["gpu"], sms, entry["gap_us"], pair)
    if critical["solo_p50_us"] is None or any(task["H"] is None for task in normal):
        name = f"{entry['workload']}, {entry['policy']}"
        raise SystemExit(f"{name}: a task completed nothing alone; give rows more --seconds")
    alone_us = critical["solo_p50_us"] + entry["gap_us"]
    return Row(
        cell=cell,
        file=file,
        policy=entry["policy"],
        n=entry["n"],
        p50=_ratio(critical["p50_us"], critical["solo_p50_us"]),
        p99=_ratio(critical["p99_us"], critical["solo_p99_us"]),
        service50=_ratio(critical["service_p50_us"], critical["solo_service_p50_us"]),
        service99=_ratio(critical["service_p99_us"], critical["solo_service_p99_us"]),
        H=sum(task["H"] for task in normal) / len(normal),
        duty=critical["solo_service_p50_us"] / alone_us,
        alone_us=critical["solo_service_p50_us"],
        yield99_us=entry.get("yield_p99_us"),
        drift=entry.get("drift"),
        verified=entry["verified"],
    )


def _ratio(value: float | None, alone: float) -> float | None:
    return None if value is None else value / alone
