"""The doctor's report as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from miriam.devices.cuda.doctor.report import (
    Cost,
    DoctorReport,
    Finding,
    GpuReport,
    LockstepRow,
    State,
)

_STYLES: dict[State, str] = {"ok": "green", "note": "cyan", "trap": "red", "missing": "yellow"}


def show(report: DoctorReport, console: Console) -> None:
    """The machine, then its GPU as far as there is one; what to do stands below its finding."""
    _findings("machine", report.machine, console)
    if report.gpu is not None:
        _gpu(report.gpu, console)


def _gpu(gpu: GpuReport, console: Console) -> None:
    console.print(
        f"\n{gpu.name}, {gpu.arch}, {gpu.sms} SMs, driver for CUDA {gpu.driver}", highlight=False
    )
    levels = (
        (f"level {found.level}", Text("yes" if found.offered else "no"), found.why)
        for found in gpu.levels
    )
    _table(("level", "offered", "seen"), levels, console)
    worlds = ((str(w.asked_sms), str(w.sms), str(w.groups), spans(w.ids)) for w in gpu.worlds)
    _table(("SMs asked", "got", "groups", "the hardware's numbers"), worlds, console)
    _table(("cost", "p50 us", "p99 us", "samples", "target"), map(_cost, gpu.costs), console)
    _table(_LOCKSTEP_HEADS, map(_lockstep, gpu.lockstep), console)
    _findings("GPU", gpu.findings, console)


def _cost(cost: Cost) -> tuple[str | Text, ...]:
    if cost.target_us is None:
        target = Text("")
    else:
        met = "met" if cost.met else "missed"
        target = Text(
            f"{cost.against} <= {cost.target_us:g}: {met}", "green" if cost.met else "red"
        )
    return cost.what, f"{cost.p50_us:.2f}", f"{cost.p99_us:.2f}", str(cost.samples), target


_LOCKSTEP_HEADS = ("connections", "beside", "streams", "alone us", "p50 us", "p99 us", "starts us")


def _lockstep(row: LockstepRow) -> tuple[str | Text, ...]:
    setting = str(row.connections)
    times = (f"{t:.0f}" for t in (row.alone_us, row.p50_us, row.p99_us, row.start_us))
    kind = Text(row.kind, "red" if row.locked else "")
    return setting, kind, str(row.streams), *times


def _findings(head: str, findings: Sequence[Finding], console: Console) -> None:
    rows = ((f.what, Text(f.state, _STYLES[f.state]), f.value) for f in findings)
    _table((head, "", "found"), rows, console)
    for finding in findings:
        if finding.state in ("trap", "missing"):
            advice = f"; {finding.advice}" if finding.advice else ""
            text = f"{finding.what}: {finding.why}{advice}"
            console.print(text, markup=False, highlight=False)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console.print(table)
    console.print()


def spans(numbers: Sequence[int]) -> str:
    """Numbers in order as ranges: ``0-3, 8``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
