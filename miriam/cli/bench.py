"""``miriam bench``: the paper's benchmark on a device, under several policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from miriam.errors import VerificationError

if TYPE_CHECKING:
    from miriam.bench import BenchResult

_FAULTS_SHOWN = 5

app = typer.Typer(help="Benchmarks.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def mdtb(
    device: Annotated[str, typer.Option(help="sim:<gpu> or cuda:<n>.")] = "sim:orin",
    policy: Annotated[
        str, typer.Option(help="Policies, separated by commas.")
    ] = "miriam,gate,multistream,sequential",
    workload: Annotated[str, typer.Option(help="Workloads, separated by commas.")] = "A,B,C,D",
    seconds: Annotated[float, typer.Option(help="Device time of each row.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of arrivals, weights and inputs.")] = 1,
    in_flight: Annotated[int, typer.Option(help="Requests in flight of the normal task.")] = 4,
    compute: Annotated[
        bool, typer.Option("--compute", help="Compute every request and check it bit for bit.")
    ] = False,
    json: Annotated[str | None, typer.Option(help="Write the report here; - is stdout.")] = None,
    plot: Annotated[str | None, typer.Option(help="Write a chart (PNG) here.")] = None,
) -> None:
    """Run MDTB: each workload under each policy, in one table.

    Exits 1 when a computed output or block count is wrong.
    """
    # Only a run needs numpy and the models; --help and --version do without.
    from miriam import bench, devices
    from miriam.bench import output, table
    from miriam.bench import plot as charts
    from miriam.bench.zoo import Zoo
    from miriam.cli.progress import Progress
    from miriam.coordinator import policies

    settings = bench.Settings(seconds=seconds, seed=seed, compute=compute)
    workloads = bench.mdtb(_names(workload), in_flight)
    chosen = [policies.get(name) for name in _names(policy)]
    machine = devices.get(device, compute=compute)
    if json is not None:
        output.require_target("--json", json)
    if plot is not None:
        output.require_target("--plot", plot)
        charts.require_plot()
    solo_device, networks = devices.get(device, compute=False), Zoo(machine.gpu.arch, seed)
    with Progress(len(workloads) * len(chosen), settings.window_ns, plain=compute) as progress:
        benchmark = bench.Benchmark(machine, solo_device, networks, settings, progress)
        result = benchmark.run(workloads, chosen)
    if json is not None:
        output.write("--json", json, bench.encode(result))
    if plot is not None:
        output.write("--plot", plot, charts.chart(result))
    table.show(result, Console(stderr=json == output.STANDARD_OUTPUT))
    _require_verified(result)


def _names(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",")]


def _require_verified(result: BenchResult) -> None:
    faults = [
        f"workload {row.workload} policy {row.policy} {fault}"
        for row in result.rows
        for fault in row.faults
    ]
    if faults:
        count = f"{len(faults)} of the requests went wrong"
        raise VerificationError("\n  ".join([count, *faults[:_FAULTS_SHOWN]]))
