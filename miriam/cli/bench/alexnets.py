"""``miriam bench alexnets``: two AlexNets in depth."""

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


def alexnets(
    device: Device = "sim:rtx2060",
    policy: Policies = None,
    workload: Workloads = None,
    seconds: Seconds = 0.05,
    seed: Seed = 1,
    in_flight: InFlight = 4,
    geometry: Geometry = "ours",
    jobs: Jobs = None,
    json: Json = None,
    plot: Plot = None,
    html: Html = None,
    trace: Trace = None,
) -> None:
    """Run two AlexNets, one critical: occupancy per layer, and what ran where."""
    from miriam.bench import Options
    from miriam.bench.studies import alexnets as study
    from miriam.coordinator import policies

    options = Options(
        benchmark="alexnets",
        device=device,
        policies=names(policy, study.POLICIES, policies.names()),
        workloads=names(workload, study.WORKLOADS, study.WORKLOADS),
        seconds=seconds,
        seed=seed,
        in_flight=in_flight,
        geometry=geometry,
    )
    run_study(options, Targets(json, plot, html, trace), jobs)
