"""``miriam verify``: every elastic form against the original, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from miriam.cli.options import Defines, IncludeDirs, defined, keep_inputs
from miriam.errors import VerificationError


def verify(
    source: Annotated[Path, typer.Argument(metavar="FILE.cu", help="The CUDA C++ file.")],
    launches: Annotated[
        Path,
        typer.Argument(metavar="LAUNCH.toml", help="Grids, arguments (docs/elasticize.md)."),
    ],
    include_dirs: IncludeDirs = None,
    defines: Defines = None,
    seed: Annotated[int, typer.Option(help="Seed of arguments, orders and yields.")] = 1,
    seconds: Annotated[float, typer.Option(help="Time limit per kernel.", min=0.1)] = 60.0,
    json: Annotated[str | None, typer.Option(help="Write the verdicts here; - is stdout.")] = None,
    strict: Annotated[
        bool, typer.Option("--assert", help="Exit 1 also when a kernel is refused.")
    ] = False,
) -> None:
    """Run the original and its elastic forms on the CPU and compare all bytes they leave.

    Exits 1 unless all are equal; kernels that can not be made elastic only count with --assert.
    """
    from miriam import check
    from miriam.bench import output
    from miriam.check import verify_report

    if json is not None:
        output.require_target("--json", json)
        keep_inputs({"--json": json}, source, launches)
    with Console(stderr=True).status("compiling") as status:
        verdicts = check.verify(
            source,
            launches,
            include_dirs=include_dirs or (),
            defines=defined(defines),
            seed=seed,
            seconds=seconds,
            progress=lambda verdict: status.update(f"{verdict.name}: {verdict.verdict}"),
        )
    if json is not None:
        output.write("--json", json, verify_report.encode(verdicts, seed))
    verify_report.show(verdicts, Console(stderr=json == output.STANDARD_OUTPUT))
    fine = {"equal"} if strict else {"equal", "refused"}
    wrong = [f"{v.name} is {v.verdict}" for v in verdicts if v.verdict not in fine]
    if wrong:
        raise VerificationError("; ".join(wrong))
