"""``miriam simulate``: will a mix fit, before buying or flashing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from miriam.errors import DeadlineError

if TYPE_CHECKING:
    from miriam.bench.verdict import Verdict


def simulate(
    mix: Annotated[Path, typer.Argument(help="The mix, a TOML file (docs/simulate.md).")],
    device: Annotated[str, typer.Option(help="sim:<gpu>, or sim:<gpu>:<SMs>.")] = "sim:orin",
    add: Annotated[
        list[str] | None, typer.Option(help="Add this model as a normal task in a closed loop.")
    ] = None,
    policy: Annotated[str, typer.Option(help="The policy.")] = "miriam",
    seconds: Annotated[float, typer.Option(help="Device time.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Seed of the arrivals.")] = 1,
    json: Annotated[str | None, typer.Option(help="Write the verdict here; - is stdout.")] = None,
    trace: Annotated[
        str | None, typer.Option(help="Write a timeline for ui.perfetto.dev here; - is stdout.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--assert", help="Exit 1 when a deadline is missed.")
    ] = False,
) -> None:
    """Say for each task of a mix whether it gets what it needs, and what breaks first."""
    # Only a run needs numpy and the models; --help and --version do without.
    from miriam import devices, models
    from miriam.bench import output, verdict_report
    from miriam.bench.simulate import Question, Simulation
    from miriam.bench.trace import Tracer
    from miriam.bench.zoo import Zoo
    from miriam.coordinator import policies
    from miriam.errors import UnknownNameError
    from miriam.runtime import read

    asked = read(mix, models.NAMES)
    for name in add or ():
        if name not in models.NAMES:
            raise UnknownNameError("--add", name, models.NAMES)
        asked = asked.with_normal(name)
    question = Question(asked, policies.get(policy), seconds, seed)
    output.require_targets({"--json": json, "--trace": trace})
    machine = devices.get(device)
    simulation = Simulation(machine, Zoo(machine.gpu.arch, seed), question)
    tracer = Tracer(machine, simulation.tasks) if trace is not None else None
    with Console(stderr=True).status("simulating") as status:
        verdict = simulation.run(
            tracer.observers if tracer else (),
            lambda run, now_ns: status.update(f"{run} {now_ns / question.window_ns:.0%}"),
        )
    if trace is not None and tracer is not None:
        output.write("--trace", trace, tracer.encode())
    if json is not None:
        output.write("--json", json, verdict_report.encode(verdict))
    verdict_report.show(verdict, Console(stderr=output.STANDARD_OUTPUT in (json, trace)))
    if strict:
        _require_held(verdict)


def _require_held(verdict: Verdict) -> None:
    late = [
        f"{task.entry.title} missed {task.missed} of {task.due} deadlines of "
        f"{task.entry.deadline_ms:g} ms"
        for task in verdict.late_tasks
    ]
    if late:
        raise DeadlineError("; ".join(late))
