"""``miriam bench lgsvl``, ``alexnets`` and ``growth``: a study's workloads under each policy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

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


def _command(
    study: str, summary: str, *, on: str = "sim:rtx2060", lasting_s: float = 0.5
) -> Callable[..., None]:
    """The command of the module ``study`` of `miriam.bench.studies`, and its defaults."""

    def command(
        device: Device = on,
        policy: Policies = None,
        workload: Workloads = None,
        seconds: Seconds = lasting_s,
        seed: Seed = 1,
        in_flight: InFlight = 4,
        geometry: Geometry = "ours",
        jobs: Jobs = None,
        json: Json = None,
        plot: Plot = None,
        html: Html = None,
        trace: Trace = None,
    ) -> None:
        from miriam.bench import Options
        from miriam.coordinator import policies

        offered = import_module(f"miriam.bench.studies.{study}")
        options = Options(
            benchmark=study,
            device=device,
            policies=names(policy, offered.POLICIES, policies.names()),
            workloads=names(workload, offered.WORKLOADS, offered.WORKLOADS),
            seconds=seconds,
            seed=seed,
            in_flight=in_flight,
            geometry=geometry,
        )
        run_study(options, Targets(json, plot, html, trace), jobs)

    command.__name__, command.__doc__ = study, summary
    return command


lgsvl = _command(
    "lgsvl",
    "Run the driving trace: ResNet-50 beside SqueezeNet, at its rates and scaled to 120 % load.",
    lasting_s=4.0,
)
alexnets = _command(
    "alexnets",
    "Run two AlexNets, one critical: occupancy per layer, and what ran where.",
    lasting_s=0.05,
)
growth = _command(
    "growth",
    "Run a critical network beside 1, 2, 4 and 8 normal ones, and two critical ones.",
    on="sim:orin",
)
