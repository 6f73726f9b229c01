"""``miriam elasticize``: elastic source, and what became elastic or was refused and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from miriam.cli.options import Archs, Defines, IncludeDirs, chosen_archs, defined, keep_inputs
from miriam.errors import MiriamError, UnknownNameError

if TYPE_CHECKING:
    from miriam.check.survey import Survey
    from miriam.elastic import IndexFunction


def elasticize(
    source: Annotated[Path, typer.Argument(metavar="FILE.cu", help="The CUDA C++ file.")],
    kernel: Annotated[
        list[str] | None, typer.Option(help="Only this kernel; may be repeated.")
    ] = None,
    arch: Archs = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the elastic source; - is stdout.")
    ] = None,
    json: Annotated[str | None, typer.Option(help="Write the report here; - is stdout.")] = None,
    index: Annotated[
        str,
        typer.Option(help="How block forms find a thread's coordinates: computed, or a table."),
    ] = "computed",
    strict: Annotated[
        bool, typer.Option("--assert", help="Exit 1 when a kernel is refused.")
    ] = False,
) -> None:
    """Make kernels sliceable, persistent and stoppable; say what was refused and why."""
    from miriam.bench import output
    from miriam.check import elastic_report
    from miriam.check.survey import survey

    targets = {"--json": json, "-o": out}
    output.require_targets(targets)
    keep_inputs(targets, source)
    with Console(stderr=True).status("compiling"):
        found = survey(
            source,
            kernels=kernel,
            archs=chosen_archs(arch),
            include_dirs=include_dirs or (),
            defines=defined(defines),
            index=_index_function(index),
        )
    text = found.text() if out is not None else ""
    if json is not None:
        output.write("--json", json, elastic_report.encode(found))
    elastic_report.show(found, Console(stderr=output.STANDARD_OUTPUT in (out, json)))
    if text and out is not None:
        output.write("-o", out, text.encode(errors="surrogateescape"))
    elif out is not None:
        raise MiriamError(f"-o {out}: nothing to write, no kernel became elastic")
    _exit(found, strict)


def _index_function(name: str) -> IndexFunction:
    if name == "computed":
        return "computed"
    if name == "table":
        return "table"
    raise UnknownNameError("--index", name, ("computed", "table"))


def _exit(found: Survey, strict: bool) -> None:
    """What the parser did not understand is always an error, a refusal only when asked."""
    kernels = [s.kernel for s in found.kernels]
    broken = [k.name for k in kernels if k.grid.reason == "parse-error"]
    if broken:
        raise MiriamError(f"syntax not understood in {', '.join(broken)}")
    refused = [k.name for k in kernels if not (k.grid.ok and k.yields.ok)]
    if strict and refused:
        raise MiriamError(f"refused: {', '.join(refused)}")
