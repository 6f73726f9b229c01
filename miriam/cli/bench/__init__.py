"""``miriam bench``: the paper's evaluation on a device; one file per kind of command."""

from __future__ import annotations

from typing import Annotated

import typer

from miriam.cli.bench.mdtb import mdtb
from miriam.cli.bench.options import Jobs
from miriam.cli.bench.overheads import overheads
from miriam.cli.bench.pairs import pairs
from miriam.cli.bench.paper import paper
from miriam.cli.bench.replay import replay
from miriam.cli.bench.shrink import shrink
from miriam.cli.bench.workloads import alexnets, growth, lgsvl

app = typer.Typer(help="Benchmarks.", no_args_is_help=True)
for command in (mdtb, lgsvl, pairs, alexnets, shrink, overheads, growth, paper):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _group(
    context: typer.Context,
    again: Annotated[
        str | None,
        typer.Option("--replay", help="Run a report (JSON) again; exit 1 if a figure differs."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    if again is not None and context.invoked_subcommand is None:
        replay(again, jobs)
