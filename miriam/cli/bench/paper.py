"""``miriam bench paper``: the paper's evaluation in the simulator, as a page."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from miriam import __version__
from miriam.cli.bench.options import Html, Jobs, Seed
from miriam.errors import UsageError


def paper(
    out: Annotated[str, typer.Option(help="Write the page (Markdown) here; - is stdout.")] = "-",
    html: Html = None,
    seed: Seed = 1,
    jobs: Jobs = None,
) -> None:
    """Run the paper's evaluation on simulated rtx2060 and xavier, beside the paper's numbers."""
    from miriam.bench import Processes, charts, execute, output
    from miriam.bench import paper as report
    from miriam.cli.bench.progress import Progress

    output.require_targets({"--out": out, "--html": html})
    if html is not None:
        charts.require_plot()
    if jobs is not None and jobs < 1:
        raise UsageError("jobs", "at least 1", jobs)
    made = (
        f"Made by `miriam bench paper --seed {seed}` with Miriam {__version__} on "
        f"{date.today().isoformat()}; the same seed gives the same simulated figures on any "
        "machine."
    )
    with Progress(plain=True) as progress:
        executor = Processes(seed, jobs or execute.cores(), progress)
        found = report.evaluate(executor, seed)
    output.write("--out", out, report.page(found, made).encode())
    if html is not None:
        output.write("--html", html, report.figures(found))
