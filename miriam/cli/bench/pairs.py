"""``miriam bench pairs``: a grid of critical and normal networks."""

from __future__ import annotations

from typing import Annotated

import typer

from miriam.cli.bench.options import (
    Device,
    Geometry,
    Html,
    InFlight,
    Jobs,
    Json,
    Pairs,
    Plot,
    Policies,
    Seconds,
    Seed,
    Targets,
    Trace,
    names,
    numbers,
    run_study,
)


def pairs(
    device: Device = "sim:orin",
    policy: Policies = None,
    pair: Pairs = None,
    gap_us: Annotated[
        str | None, typer.Option(help="Gaps between critical requests, us; 0: closed loop.")
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="Numbers of SMs, separated by commas; 0: all.")
    ] = None,
    seconds: Seconds = 0.2,
    seed: Seed = 1,
    in_flight: InFlight = 4,
    geometry: Geometry = "ours",
    jobs: Jobs = None,
    json: Json = None,
    plot: Plot = None,
    html: Html = None,
    trace: Trace = None,
) -> None:
    """Run a grid of critical network x normal network x gap x world.

    On cuda a network may be a PyTorch model: torch:resnet50, or torch:vgg16@4 for a batch of 4.
    """
    from miriam.bench import Options
    from miriam.bench.studies import pairs as study
    from miriam.coordinator import policies

    options = Options(
        benchmark="pairs",
        device=device,
        policies=names(policy, study.POLICIES, policies.names()),
        workloads=names(pair, study.WORKLOADS, study.WORKLOADS),
        seconds=seconds,
        seed=seed,
        in_flight=in_flight,
        geometry=geometry,
        gaps_us=numbers("gap-us", gap_us, study.GAPS_US),
        worlds=tuple(int(sms) for sms in numbers("world", world, study.WORLDS)),
    )
    run_study(options, Targets(json, plot, html, trace), jobs)
