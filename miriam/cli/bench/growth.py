"""``miriam bench growth``: more and more normal tasks."""

from __future__ import annotations

from miriam.cli.bench.options import (
    Device,
    Geometry,
    Html,
    InFlight,
    Jobs,
    Json,
    Plot,
    Policies,
    Seconds,
    Seed,
    Targets,
    Trace,
    Workloads,
    names,
    run_study,
)


def growth(
    device: Device = "sim:orin",
    policy: Policies = None,
    workload: Workloads = None,
    seconds: Seconds = 0.5,
    seed: Seed = 1,
    in_flight: InFlight = 4,
    geometry: Geometry = "ours",
    jobs: Jobs = None,
    json: Json = None,
    plot: Plot = None,
    html: Html = None,
    trace: Trace = None,
) -> None:
    """Run a critical network beside 1, 2, 4 and 8 normal ones, and two critical ones."""
    from miriam.bench import Options
    from miriam.bench.studies import growth as study
    from miriam.coordinator import policies

    options = Options(
        benchmark="growth",
        device=device,
        policies=names(policy, study.POLICIES, policies.names()),
        workloads=names(workload, study.WORKLOADS, study.WORKLOADS),
        seconds=seconds,
        seed=seed,
        in_flight=in_flight,
        geometry=geometry,
    )
    run_study(options, Targets(json, plot, html, trace), jobs)
