"""What ``miriam coverage`` answers, as JSON and as tables."""

from __future__ import annotations

from typing import Literal

import msgspec
from rich.console import Console

from miriam.check.coverage import Coverage, FileError
from miriam.check.elastic_report import (
    KernelReport,
    kernel_report,
    median_growth,
    register_growth,
    spills,
)


class ArchReport(msgspec.Struct, frozen=True):
    """How the elastic kernels compiled on one architecture; growth is in registers per thread."""

    compiled: int
    not_compiled: int
    median_register_growth: float | None
    most_register_growth: int | None
    spills: int


class CoverageReport(msgspec.Struct, frozen=True, kw_only=True):
    """``miriam.coverage/1``; ``compiled`` is null where nothing was asked to be compiled."""

    schema: Literal["miriam.coverage/1"] = "miriam.coverage/1"
    folder: str
    files: int
    kernels: int
    grid_ok: int
    block_ok: int
    yield_ok: int
    reasons: dict[str, int]
    compiled: dict[str, ArchReport] | None
    errors: tuple[FileError, ...]
    found: tuple[KernelReport, ...]


def report(coverage: Coverage) -> CoverageReport:
    """The report as a value."""
    kernels = [k.kernel for k in coverage.kernels]
    return CoverageReport(
        folder=coverage.folder,
        files=coverage.files,
        kernels=len(kernels),
        grid_ok=sum(k.grid.ok for k in kernels),
        block_ok=sum(k.block.ok for k in kernels),
        yield_ok=sum(k.yields.ok for k in kernels),
        reasons=dict(coverage.reasons),
        compiled={a: _arch(coverage, a) for a in coverage.archs} if coverage.compiled else None,
        errors=coverage.errors,
        found=tuple(kernel_report(k) for k in coverage.kernels),
    )


def encode(coverage: Coverage) -> bytes:
    """The report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report(coverage)), indent=2) + b"\n"


def show(coverage: Coverage, console: Console) -> None:
    """Totals, each refusal, what did not compile, and the files with errors."""
    made = report(coverage)
    _print(console, f"{coverage.folder}: {made.files} files, {made.kernels} kernels")
    axes = {"grid": made.grid_ok, "block": made.block_ok, "yield": made.yield_ok}
    _print(console, ", ".join(f"{axis} {_share(count, made)}" for axis, count in axes.items()))
    for arch, compiled in (made.compiled or {}).items():
        _print(
            console,
            f"{arch}: {compiled.compiled} of {made.grid_ok} compiled, register growth median "
            f"{compiled.median_register_growth}, most {compiled.most_register_growth}, "
            f"{compiled.spills} spill",
        )
    for reason, count in coverage.reasons.items():
        _print(console, f"\n{reason}: {count}")
        for item in coverage.kernels:
            verdict = item.kernel.grid
            if not verdict.ok and verdict.reason == reason:
                place = f"{verdict.path}:{verdict.line}:{verdict.column}"
                _print(console, f"  {place}: {item.kernel.name}: {verdict.detail}")
    for item in coverage.kernels:
        for note in item.notes:
            _print(console, f"note: {item.kernel.path}: {item.kernel.name}: {note}")
    for error in coverage.errors:
        _print(console, f"error: {error.error}")


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _share(count: int, made: CoverageReport) -> str:
    percent = f" ({count / made.kernels:.1%})" if made.kernels else ""
    return f"{count}/{made.kernels}{percent}"


def _arch(coverage: Coverage, arch: str) -> ArchReport:
    compiled = [k.compiled[arch] for k in coverage.kernels if arch in k.compiled]
    elastic = sum(k.kernel.grid.ok for k in coverage.kernels)
    return ArchReport(
        compiled=len(compiled),
        not_compiled=elastic - len(compiled),
        median_register_growth=median_growth(compiled),
        most_register_growth=max(map(register_growth, compiled), default=None),
        spills=sum(map(spills, compiled)),
    )
