"""``miriam coverage``: how many kernels of a folder become elastic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from miriam.cli.options import Archs, Defines, IncludeDirs, chosen_archs, defined
from miriam.errors import MiriamError


def coverage(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Searched for .cu and .cuh files.")],
    arch: Archs = None,
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    json: Annotated[str | None, typer.Option(help="Write the report here; - is stdout.")] = None,
    strict: Annotated[
        bool, typer.Option("--assert", help="Exit 1 when a kernel is refused or a file is wrong.")
    ] = False,
) -> None:
    """Count the kernels that become elastic, and the refusals by reason.

    With --arch each kernel is also compiled for these architectures.
    """
    from miriam.bench import output
    from miriam.check import coverage_report
    from miriam.check.coverage import cover

    if json is not None:
        output.require_target("--json", json)
    with Console(stderr=True).status("looking for kernels") as status:
        found = cover(
            folder,
            archs=chosen_archs(arch),
            compiling=bool(arch),
            include_dirs=include_dirs or (),
            defines=defined(defines),
            progress=lambda done, of: status.update(f"{done} of {of} files"),
        )
    if json is not None:
        output.write("--json", json, coverage_report.encode(found))
    coverage_report.show(found, Console(stderr=json == output.STANDARD_OUTPUT))
    if strict and (found.reasons or found.errors):
        refused = sum(found.reasons.values())
        raise MiriamError(f"{refused} kernels refused, {len(found.errors)} files with errors")
