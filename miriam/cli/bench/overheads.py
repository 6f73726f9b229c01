"""``miriam bench overheads``: what decisions and launches cost by themselves."""

from __future__ import annotations

from rich.console import Console

from miriam.cli.bench.options import (
    Device,
    Geometry,
    Html,
    Pairs,
    Plot,
    Policies,
    Targets,
    names,
)


def overheads(
    device: Device = "sim:orin",
    policy: Policies = None,
    pair: Pairs = None,
    geometry: Geometry = "ours",
    plot: Plot = None,
    html: Html = None,
) -> None:
    """Time the policies' decisions on this host, and requests alone under each policy."""
    from miriam.bench import Options, html_parts, output, overheads_table
    from miriam.bench import overheads as study
    from miriam.bench.charts import overheads
    from miriam.bench.execute import workshop
    from miriam.coordinator import policies

    targets = Targets(plot=plot, html=html)
    targets.check()
    options = Options(
        benchmark=study.NAME,
        device=device,
        policies=names(policy, study.POLICIES, policies.names()),
        workloads=names(pair, study.PAIRS, study.PAIRS),
        seconds=1.0,
        seed=1,
        geometry=geometry,
    )
    report = study.measure(options, workshop(options.seed))
    if plot is not None:
        output.write("--plot", plot, overheads.charts(report)[0].png)
    if html is not None:
        text = html_parts.document(report.title, [html_parts.overheads(report)])
        output.write("--html", html, text)
    overheads_table.show(report, Console(stderr=targets.printed))
