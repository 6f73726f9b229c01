"""The options that the benchmark commands share, and what they do with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from miriam.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from miriam.bench import BenchResult, Executor, Observer, Options

_FAULTS_SHOWN = 5

Device = Annotated[str, typer.Option("--device", help="sim:<gpu> or cuda:<n>.")]
Policies = Annotated[
    str | None, typer.Option("--policy", help="Policies, separated by commas; all for every one.")
]
Workloads = Annotated[
    str | None, typer.Option("--workload", help="Workloads, separated by commas.")
]
Pairs = Annotated[
    str | None, typer.Option("--pair", help="critical+normal pairs, separated by commas.")
]
Seconds = Annotated[float, typer.Option("--seconds", help="Device time of each row.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of arrivals, weights and inputs.")]
InFlight = Annotated[
    int, typer.Option("--in-flight", help="Requests in flight of the normal task.")
]
Compute = Annotated[
    bool, typer.Option("--compute", help="Compute every request and check it bit for bit.")
]
Geometry = Annotated[
    str, typer.Option("--geometry", help="Launch geometry of the networks: ours or tango.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Processes side by side; one per core by default.")
]
Json = Annotated[str | None, typer.Option("--json", help="Write the report here; - is stdout.")]
Plot = Annotated[str | None, typer.Option("--plot", help="Write the main chart (PNG) here.")]
Trace = Annotated[
    str | None, typer.Option(help="Write the timeline of one row for ui.perfetto.dev here.")
]
Html = Annotated[
    str | None, typer.Option("--html", help="Write charts and tables as one HTML file here.")
]


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the results go; None for nowhere."""

    json: str | None = None
    plot: str | None = None
    html: str | None = None
    trace: str | None = None

    def check(self) -> None:
        """UsageError or MissingCapabilityError, before the run, if one can not be written."""
        from miriam.bench import charts, output

        output.require_targets(
            {
                "--json": self.json,
                "--plot": self.plot,
                "--html": self.html,
                "--trace": self.trace,
            }
        )
        if self.plot or self.html:
            charts.require_plot()

    @property
    def printed(self) -> bool:
        """Whether one of them is standard output, which leaves standard error to the table."""
        from miriam.bench import output

        return output.STANDARD_OUTPUT in (self.json, self.plot, self.html, self.trace)


def names(text: str | None, default: Sequence[str], everything: Sequence[str]) -> tuple[str, ...]:
    """The names in a comma-separated option; ``all`` stands for ``everything``."""
    if text is None:
        return tuple(default)
    if text == "all":
        return tuple(everything)
    return tuple(name.strip() for name in text.split(","))


def numbers(option: str, text: str | None, default: Sequence[float]) -> tuple[float, ...]:
    """The numbers, not negative, in a comma-separated option."""
    if text is None:
        return tuple(default)
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (math.nan,)
    if not all(0 <= number < math.inf for number in found):
        raise UsageError(option, "numbers, not negative, separated by commas", text)
    return found


def run_study(options: Options, targets: Targets, jobs: int | None) -> None:
    """Run a benchmark, print its table and write its files; exits 1 for a wrong output."""
    # Only a run needs numpy and the models; --help and --version do without.
    from miriam import bench
    from miriam.bench import charts, execute, html_parts, output, studies, table
    from miriam.cli.bench.progress import Progress

    targets.check()
    if targets.trace is not None and not options.machine.simulated:
        raise UsageError("--trace", "on a simulated device, sim:<gpu>", options.device)
    with Progress(plain=options.compute) as progress:
        runner = executor(options, jobs, progress)
        traced = execute.Traced(runner) if targets.trace is not None else None
        result = studies.run(options, traced or runner)
    result = replace(result, measured_on=options.machine.measured_on())
    if targets.trace is not None and traced is not None:
        output.write("--trace", targets.trace, traced.trace)
    if targets.json is not None:
        output.write("--json", targets.json, bench.encode(result))
    if targets.plot is not None:
        output.write("--plot", targets.plot, charts.charts(result)[0].png)
    if targets.html is not None:
        output.write("--html", targets.html, html_parts.page(result))
    table.show(result, Console(stderr=targets.printed))
    _require_verified(result)


def executor(options: Options, jobs: int | None, observer: Observer) -> Executor:
    """What runs the rows: processes side by side, or in rounds on a real device.

    Opens the device once, so that an unknown or absent one is said before anything runs.
    """
    from miriam import bench
    from miriam.bench import execute
    from miriam.bench.rounds import InRounds

    machine = bench.Machine(options.device)
    machine.open(compute=options.compute)
    if jobs is not None and jobs < 1:
        raise UsageError("jobs", "at least 1", jobs)
    if not machine.simulated:
        return InRounds(execute.workshop(options.seed), observer)
    return bench.Processes(options.seed, jobs or execute.cores(), observer)


def _require_verified(result: BenchResult) -> None:
    faults = [
        f"workload {row.workload} policy {row.policy} {fault}"
        for row in result.rows
        for fault in row.faults
    ]
    if faults:
        count = f"{len(faults)} of the requests went wrong"
        raise VerificationError("\n  ".join([count, *faults[:_FAULTS_SHOWN]]))
