"""``miriam bench shrink``: how far the rules shrink the design space, and what that loses."""

from __future__ import annotations

from rich.console import Console

from miriam.cli.bench.options import (
    Device,
    Geometry,
    Html,
    Json,
    Pairs,
    Plot,
    Seed,
    Targets,
    names,
)


def shrink(
    device: Device = "sim:rtx2060",
    pair: Pairs = None,
    seed: Seed = 1,
    geometry: Geometry = "ours",
    json: Json = None,
    plot: Plot = None,
    html: Html = None,
) -> None:
    """Prune the schedules of normal kernels beside critical ones, and try them all."""
    from miriam.bench import Options, html_parts, output, pruning, pruning_table
    from miriam.bench.charts import shrink
    from miriam.bench.execute import workshop

    targets = Targets(json, plot, html)
    targets.check()
    options = Options(
        benchmark=pruning.NAME,
        device=device,
        policies=("miriam",),
        workloads=names(pair, pruning.PAIRS, pruning.PAIRS),
        seconds=1.0,
        seed=seed,
        geometry=geometry,
    )
    report = pruning.explore(options, workshop(seed))
    if json is not None:
        output.write("--json", json, pruning.encode(report))
    if plot is not None:
        output.write("--plot", plot, shrink.charts(report)[0].png)
    if html is not None:
        text = html_parts.document(report.title, [html_parts.shrinking(report)])
        output.write("--html", html, text)
    pruning_table.show(report, Console(stderr=targets.printed))
