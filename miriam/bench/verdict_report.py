"""The verdict as JSON, schema ``miriam.simulate/1``, and as a table for people.

Times in JSON are in us and rates in requests per second, rounded to three decimals; what the run
can not say is null. The same seed gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from miriam.bench.delay import worded
from miriam.bench.metrics import Sample
from miriam.bench.verdict import Break, TaskVerdict, Verdict

NOTES = (
    "Latency: arrival to completion, p99 of (n) requests. vs alone: p99 / p99 alone.",
    "H: rate / rate alone. h: rate while a critical request runs / rate alone, in closed loops.",
    "Simulated: docs/simulate.md says how far to trust it.",
)
_NOTHING = "-"
_WIDE = 132
_WORTH_SAYING = 0.02


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task; ``H`` and ``h`` are null for a critical one."""

    task: str
    model: str
    critical: bool
    priority: int
    deadline_ms: float | None
    held: bool | None
    due: int
    missed: int
    arrived: int
    requests: int
    dropped: int
    refused: int
    p50_us: float | None
    p99_us: float | None
    max_us: float | None
    solo_p50_us: float | None
    solo_p99_us: float | None
    overhead_p50: float | None
    overhead_p99: float | None
    rate_hz: float
    solo_rate_hz: float
    H: float | None
    h: float | None


@dataclass(frozen=True, slots=True)
class DelayReport:
    """One part of a delay: its cause, the task behind it, and how long."""

    cause: str
    by: str
    us: float


@dataclass(frozen=True, slots=True)
class BreakReport:
    """The first thing that breaks; ``late_us`` is null for what never completed."""

    task: str
    request: int
    at_us: float
    what: Literal["late", "dropped", "refused"]
    late_us: float | None
    delays: tuple[DelayReport, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole document; ``held`` is null where no task has a deadline."""

    schema: Literal["miriam.simulate/1"]
    device: str
    simulated: bool
    policy: str
    seed: int
    seconds: float
    late: Literal["count", "drop"]
    queue: int | None
    held: bool | None
    tasks: tuple[TaskReport, ...]
    first_break: BreakReport | None


def report(verdict: Verdict) -> Report:
    """The document that says what ``verdict`` says."""
    held = [task.held for task in verdict.tasks if task.held is not None]
    return Report(
        schema="miriam.simulate/1",
        device=verdict.device,
        simulated=True,
        policy=verdict.policy,
        seed=verdict.seed,
        seconds=verdict.window_ns / 1e9,
        late=verdict.mix.late,
        queue=verdict.mix.queue,
        held=all(held) if held else None,
        tasks=tuple(_task(task) for task in verdict.tasks),
        first_break=_break(verdict.first_break),
    )


def encode(verdict: Verdict) -> bytes:
    """The document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(report(verdict)), indent=1) + b"\n"


def show(verdict: Verdict, console: Console) -> None:
    """Print the table, what its columns mean, and the first thing that breaks."""
    if not console.is_terminal:
        console.width = _WIDE
    console.print(_table(verdict))
    for note in NOTES:
        console.print(note, style="dim", markup=False, highlight=False)
    console.print(headline(verdict), markup=False, highlight=False, soft_wrap=True)


def headline(verdict: Verdict) -> str:
    """Whether it fits, in a sentence or two: what breaks first, and who delayed it."""
    found = verdict.first_break
    if found is None:
        with_deadline = any(task.held is not None for task in verdict.tasks)
        return "It fits: every deadline is held." if with_deadline else "Nothing has a deadline."
    where = f"{found.task}, request {found.request}, at {found.at_ns / 1e6:.3f} ms"
    if found.what == "refused":
        return f"First to break: {where}: refused by a full queue."
    what = {
        (False, "dropped"): "dropped, its deadline had passed before it started",
        (False, "late"): "not done in the window, its deadline had passed",
    }.get((found.late_ns is not None, found.what), f"late by {(found.late_ns or 0) / 1e6:.3f} ms")
    total = sum(d.ns for d in found.delays)
    parts = worded(found.delays, round(_WORTH_SAYING * abs(total)))
    return f"First to break: {where}: {what}." + (
        f" {total / 1e6:.3f} ms more than alone: {parts}." if parts else ""
    )


def _table(verdict: Verdict) -> Table:
    seconds = verdict.window_ns / 1e9
    view = Table(
        title=f"{verdict.policy} on {verdict.device} (simulated), {seconds:g} s, "
        f"seed {verdict.seed}",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    view.add_column("task")
    view.add_column("")
    view.add_column("deadline")
    for heading in ("p50 ms", "p99 ms", "max ms", "p99 alone", "vs alone", "req/s", "H", "h"):
        view.add_column(heading, justify="right")
    view.add_column("dropped\nrefused", justify="right")
    for task in verdict.tasks:
        view.add_row(*_cells(task))
    return view


def _cells(task: TaskVerdict) -> tuple[str, ...]:
    latency, entry = task.latency, task.entry
    count = f" ({latency.count})" if 0 < latency.count < 1_000 else ""
    return (
        entry.title,
        "critical" if entry.critical else "normal",
        _deadline(task),
        _ms(latency, 50),
        _ms(latency, 99) + count,
        _ms(latency, 100),
        _ms(task.solo_latency, 99),
        _number(task.overhead(99), "x"),
        f"{task.rate_hz:.1f}",
        _NOTHING if entry.critical else _number(task.H),
        _NOTHING if entry.critical else _number(task.h),
        f"{task.dropped} {task.refused}" if task.dropped or task.refused else _NOTHING,
    )


def _deadline(task: TaskVerdict) -> str:
    if task.held is None:
        return _NOTHING
    limit = f"{task.entry.deadline_ms:g} ms"
    if task.held:
        return f"{limit} held ({task.due})"
    return f"{limit} MISSED {task.missed} of {task.due}"


def _task(task: TaskVerdict) -> TaskReport:
    entry, critical = task.entry, task.entry.critical
    return TaskReport(
        task=entry.title,
        model=entry.model,
        critical=critical,
        priority=entry.priority,
        deadline_ms=entry.deadline_ms,
        held=task.held,
        due=task.due,
        missed=task.missed,
        arrived=task.arrived,
        requests=task.latency.count,
        dropped=task.dropped,
        refused=task.refused,
        p50_us=_us(task.latency, 50),
        p99_us=_us(task.latency, 99),
        max_us=_us(task.latency, 100),
        solo_p50_us=_us(task.solo_latency, 50),
        solo_p99_us=_us(task.solo_latency, 99),
        overhead_p50=_rounded(task.overhead(50)),
        overhead_p99=_rounded(task.overhead(99)),
        rate_hz=round(task.rate_hz, 3),
        solo_rate_hz=round(task.solo_rate_hz, 3),
        H=None if critical else _rounded(task.H),
        h=None if critical else _rounded(task.h),
    )


def _break(found: Break | None) -> BreakReport | None:
    if found is None:
        return None
    return BreakReport(
        task=found.task,
        request=found.request,
        at_us=found.at_ns / 1_000,
        what=found.what,
        late_us=None if found.late_ns is None else found.late_ns / 1_000,
        delays=tuple(DelayReport(d.cause, d.by, d.ns / 1_000) for d in found.delays),
    )


def _us(sample: Sample, percent: float) -> float | None:
    value = sample.percentile(percent)
    return None if value is None else value / 1_000


def _ms(sample: Sample, percent: float) -> str:
    value = sample.percentile(percent)
    return _NOTHING if value is None else f"{value / 1e6:.3f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _number(value: float | None, unit: str = "") -> str:
    return _NOTHING if value is None else f"{value:.2f}{unit}"
