"""The command line: one file per command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from miriam import __version__
from miriam.cli import bench
from miriam.cli.coverage import coverage
from miriam.cli.doctor import doctor
from miriam.cli.elasticize import elasticize
from miriam.cli.simulate import simulate
from miriam.cli.verify import verify
from miriam.errors import MiriamError

app = typer.Typer(
    name="miriam",
    help="A latency-critical DNN beside normal ones on one NVIDIA GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.command()(simulate)
app.command()(elasticize)
app.command()(verify)
app.command()(coverage)
app.command()(doctor)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"miriam {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; exits 0 when done, else with the error's exit code (2: usage)."""
    try:
        app()
    except MiriamError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
