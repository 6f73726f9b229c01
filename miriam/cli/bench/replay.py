"""``miriam bench --replay``: a report made again from itself."""

from __future__ import annotations

import typer

from miriam.cli.bench.options import executor


def replay(path: str, jobs: int | None) -> None:
    """Run the report in ``path`` again; exits 1 and names the first figure that differs."""
    from miriam.bench import replay as again
    from miriam.cli.bench.progress import Progress

    data, options = again.read(path)
    with Progress(plain=options.compute) as progress:
        again.replay(data, options, executor(options, jobs, progress))
    typer.echo(f"{path}: the same, byte for byte")
