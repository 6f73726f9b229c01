"""What ``miriam elasticize`` answers, as JSON and as a table."""

from __future__ import annotations

from statistics import median
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from miriam.check.survey import FOLDS, ORIGINAL, Survey, Surveyed
from miriam.compile import CompiledForms, FormReport
from miriam.elastic import Verdict

_PERSISTENT = "persistent"
_YIELD = "yield"


class VerdictReport(msgspec.Struct, frozen=True):
    """Whether a kernel has a form; if not the reason (a stable name), why, and where."""

    ok: bool
    reason: str | None
    detail: str | None
    path: str | None
    line: int | None
    column: int | None
    excerpt: str | None


class FormResources(msgspec.Struct, frozen=True):
    """What the compiler reports of a form; ``spill_bytes`` are local bytes per thread."""

    registers: int
    shared_bytes: int
    spill_bytes: int


class BlockReport(VerdictReport, frozen=True):
    """The verdict on the block axis.

    ``resources``: of the yield form, by architecture and N, the logical threads on a physical
    one. ``fmad``: whether a*b+c may be contracted where a step changes between values of N.
    """

    resources: dict[str, dict[int, FormResources]] | None = None
    fmad: dict[str, bool] | None = None


class KernelReport(msgspec.Struct, frozen=True, rename={"yields": "yield"}):
    """One kernel; ``resources`` by architecture and form, null where nothing was compiled."""

    name: str
    path: str
    line: int
    grid: VerdictReport
    block: BlockReport
    yields: VerdictReport
    resources: dict[str, dict[str, FormResources]] | None
    fmad: dict[str, bool] | None
    notes: tuple[str, ...]


class ElasticizeReport(msgspec.Struct, frozen=True, kw_only=True):
    """``miriam.elasticize/1``."""

    schema: Literal["miriam.elasticize/1"] = "miriam.elasticize/1"
    path: str
    archs: tuple[str, ...]
    kernels: tuple[KernelReport, ...]


def encode(survey: Survey) -> bytes:
    """The report as JSON."""
    report = ElasticizeReport(
        path=survey.path,
        archs=tuple(survey.texts),
        kernels=tuple(kernel_report(s) for s in survey.kernels),
    )
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def kernel_report(surveyed: Surveyed) -> KernelReport:
    """One kernel's part of the report."""
    kernel, compiled = surveyed.kernel, surveyed.compiled
    return KernelReport(
        name=kernel.name,
        path=kernel.path,
        line=kernel.line,
        grid=_verdict(kernel.grid),
        block=_block(surveyed),
        yields=_verdict(kernel.yields),
        resources={a: _resources(c) for a, c in compiled.items()} or None,
        fmad={a: c.fmad for a, c in compiled.items()} or None,
        notes=surveyed.notes,
    )


def show(survey: Survey, console: Console) -> None:
    """A row per kernel; below them each refusal with the line it points at, and the notes."""
    table = Table(box=None, pad_edge=False)
    axes = ("grid", "yield", "block")
    folds = f"yield form on {' and '.join(f'{n}:1' for n in FOLDS)}"
    for head in ("kernel", "line", *axes, "registers original > persistent", folds):
        table.add_column(head)
    for surveyed in survey.kernels:
        kernel = surveyed.kernel
        table.add_row(
            Text(kernel.name),
            str(kernel.line),
            _mark(kernel.grid),
            _mark(kernel.yields),
            _mark(kernel.block),
            "  ".join(_registers(a, c) for a, c in surveyed.compiled.items()),
            "  ".join(_folded(a, c) for a, c in surveyed.folded.items()),
        )
    console.print(table)
    for surveyed in survey.kernels:
        kernel = surveyed.kernel
        whole = kernel.yields if kernel.grid.ok else kernel.grid
        for axis, verdict in (("", whole), (" block", kernel.block)):
            # What has no grid form has no block form for the same reason.
            if not verdict.ok and (not axis or whole.ok):
                place = f"{verdict.path}:{verdict.line}:{verdict.column}"
                told = f"{kernel.name}{axis} refused: {verdict.reason}: {verdict.detail}"
                _print(console, f"\n{place}: {told}")
                _print(console, verdict.excerpt)
    for surveyed in survey.kernels:
        for note in surveyed.notes:
            _print(console, f"note: {surveyed.kernel.name}: {note}")


def register_growth(compiled: CompiledForms) -> int:
    """Registers per thread that the persistent form takes beyond the original."""
    return _form(compiled).resources.registers - compiled.original.resources.registers


def median_growth(compiled: list[CompiledForms]) -> float | None:
    """The median of ``register_growth``; None of nothing."""
    return median(map(register_growth, compiled)) if compiled else None


def spills(compiled: CompiledForms) -> bool:
    """Whether any form needs more local memory than the original."""
    return any(form.spills for form in compiled.forms)


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _mark(verdict: Verdict) -> Text:
    return Text("elastic", "green") if verdict.ok else Text(verdict.reason, "yellow")


def _registers(arch: str, compiled: CompiledForms) -> str:
    form = _form(compiled)
    flag = " SPILLS" if spills(compiled) else ""
    flag += " fewer blocks" if form.loses_resident_blocks else ""
    before, after = compiled.original.resources.registers, form.resources.registers
    return f"{arch} {before} > {after}{flag}"


def _folded(arch: str, compiled: CompiledForms) -> str:
    forms = compiled.forms[-len(FOLDS) :]
    told = (f"{f.resources.registers}{' SPILLS' if f.spills else ''}" for f in forms)
    return f"{arch} {', '.join(told)}"


def _form(compiled: CompiledForms) -> FormReport:
    return next(form for form in compiled.forms if form.label == _PERSISTENT)


def _resources(compiled: CompiledForms) -> dict[str, FormResources]:
    reports = {ORIGINAL: compiled.original, **{f.label: f for f in compiled.forms}}
    return {
        label: FormResources(
            r.resources.registers, r.resources.static_shared_bytes, r.resources.local_bytes
        )
        for label, r in reports.items()
    }


def _block(surveyed: Surveyed) -> BlockReport:
    verdict = msgspec.structs.asdict(_verdict(surveyed.kernel.block))
    folded = surveyed.folded
    resources = {
        arch: {
            1: made[_YIELD],
            **{fold: made[f"block/{fold}"] for fold in FOLDS},
        }
        for arch, made in ((a, _resources(c)) for a, c in folded.items())
    }
    fmad = {a: c.fmad for a, c in folded.items()}
    return BlockReport(**verdict, resources=resources or None, fmad=fmad or None)


def _verdict(verdict: Verdict) -> VerdictReport:
    if verdict.ok:
        return VerdictReport(True, None, None, None, None, None, None)
    return VerdictReport(
        False,
        verdict.reason,
        verdict.detail,
        verdict.path or None,
        verdict.line or None,
        verdict.column or None,
        verdict.excerpt or None,
    )
