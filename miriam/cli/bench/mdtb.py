"""``miriam bench mdtb``: the paper's benchmark."""

from __future__ import annotations

from miriam.cli.bench.options import (
    Compute,
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


def mdtb(
    device: Device = "sim:orin",
    policy: Policies = None,
    workload: Workloads = None,
    seconds: Seconds = 0.5,
    seed: Seed = 1,
    in_flight: InFlight = 4,
    compute: Compute = False,
    geometry: Geometry = "ours",
    jobs: Jobs = None,
    json: Json = None,
    plot: Plot = None,
    html: Html = None,
    trace: Trace = None,
) -> None:
    """Run MDTB: each workload under each policy, in one table.

    Exits 1 when a computed output or block count is wrong.
    """
    from miriam.bench import Options
    from miriam.bench.studies import mdtb as study
    from miriam.coordinator import policies

    options = Options(
        benchmark="mdtb",
        device=device,
        policies=names(policy, study.POLICIES, policies.names()),
        workloads=names(workload, study.WORKLOADS, study.WORKLOADS),
        seconds=seconds,
        seed=seed,
        in_flight=in_flight,
        compute=compute,
        geometry=geometry,
    )
    run_study(options, Targets(json, plot, html, trace), jobs)
