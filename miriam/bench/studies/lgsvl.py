"""The driving trace of the paper's case study (section 8.5), as given and scaled up.

At the paper's rates a modern GPU is nearly idle and throughput can not differ, so that both rates
are also scaled until one inference after the other would be 120 % of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from miriam.bench.arrivals import Closed, Uniform
from miriam.bench.benchmark import Cell
from miriam.bench.execute import Executor
from miriam.bench.jobs import Job
from miriam.bench.machine import Machine
from miriam.bench.options import Options
from miriam.bench.workloads import Point, Workload, WorkloadTask
from miriam.errors import UnknownNameError

TITLE = "LGSVL driving trace"
POLICIES = ("miriam", "barrier", "multistream", "sequential")
WORKLOADS = ("given", "scaled")
RATES_HZ = {"resnet50": 10.0, "squeezenet": 12.5}
CRITICAL, NORMAL = RATES_HZ
LOAD = 1.2
_PROBE_NS = 200_000_000


def cells(options: Options, executor: Executor) -> Sequence[Cell]:
    """``given``: ResNet-50 at 10 Hz beside SqueezeNet at 12.5 Hz; ``scaled``: at 120 % load."""
    for name in options.workloads:
        if name not in WORKLOADS:
            raise UnknownNameError("workload", name, WORKLOADS)
    machine = Machine(options.device)
    scales = {"given": 1.0}
    if "scaled" in options.workloads:
        scales["scaled"] = _scale(options, machine, executor)
    return [Cell(machine, _workload(options, name, scales[name])) for name in options.workloads]


def _workload(options: Options, name: str, scale: float) -> Workload:
    deep = options.in_flight
    return Workload(
        name,
        (
            WorkloadTask(
                CRITICAL,
                options.network(CRITICAL),
                Uniform(RATES_HZ[CRITICAL] * scale),
                critical=True,
            ),
            WorkloadTask(
                NORMAL, options.network(NORMAL), Uniform(RATES_HZ[NORMAL] * scale), in_flight=deep
            ),
        ),
        Point(scale=scale),
    )


def _scale(options: Options, machine: Machine, executor: Executor) -> float:
    """The factor on both rates that makes the sum of rate x time alone ``LOAD``."""
    jobs = [_probe(options, machine, network) for network in RATES_HZ]
    load = 0.0
    for (network, hz), record in zip(RATES_HZ.items(), executor.run(jobs), strict=True):
        alone_ns = record.tasks[0].latency.percentile(50)
        if alone_ns is None:
            raise TimeoutError(f"{network} alone completed nothing in {_PROBE_NS} ns")
        load += hz * alone_ns / 1e9
    return round(LOAD / load, 3)


def _probe(options: Options, machine: Machine, network: str) -> Job:
    """One inference after the other, alone."""
    return Job(
        machine=machine,
        workload="",
        tasks=(WorkloadTask(network, options.network(network), Closed()),),
        policy="sequential",
        window_ns=_PROBE_NS,
        seed=options.seed,
        compute=not machine.simulated,
        solo=True,
    )
