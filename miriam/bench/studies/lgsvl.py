"""The driving trace of the paper's case study (section 8.5), as given and scaled up.

At the paper's rates a modern GPU is nearly idle and throughput can not differ. So both rates are
also scaled until one inference after the other would take 120 % of the time, each from its first
kernel on: on a GPU a latency has the benchmark's loop in it as well. With our networks most of that
is the critical one's, which then has more than the GPU can do even alone; therefore there is a
third form, in which each network brings half of the 120 %.
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
from miriam.errors import ExecutionError, UnknownNameError

TITLE = "LGSVL driving trace"
POLICIES = ("miriam", "barrier", "multistream", "sequential")
WORKLOADS = ("given", "scaled", "balanced")
RATES_HZ = {"resnet50": 10.0, "squeezenet": 12.5}
CRITICAL, NORMAL = RATES_HZ
LOAD = 1.2
_PROBE_NS = 10**12
_PROBED = 3


def cells(options: Options, executor: Executor) -> Sequence[Cell]:
    """``given``: ResNet-50 at 10 Hz beside SqueezeNet at 12.5 Hz; two ways to 120 % load."""
    for name in options.workloads:
        if name not in WORKLOADS:
            raise UnknownNameError("workload", name, WORKLOADS)
    machine = options.machine
    scales = {"given": (1.0, 1.0)}
    if options.workloads != ("given",):
        alone_s = _alone_s(options, machine, executor)
        loads = [hz * alone_s[network] for network, hz in RATES_HZ.items()]
        both = round(LOAD / sum(loads), 3)
        half_a, half_b = (round(LOAD / 2 / load, 3) for load in loads)
        scales |= {"scaled": (both, both), "balanced": (half_a, half_b)}
    return [Cell(machine, _workload(options, name, scales[name])) for name in options.workloads]


def _workload(options: Options, name: str, scales: tuple[float, float]) -> Workload:
    deep = options.in_flight
    rates = tuple(hz * scale for hz, scale in zip(RATES_HZ.values(), scales, strict=True))
    critical = WorkloadTask(CRITICAL, options.network(CRITICAL), Uniform(rates[0]), critical=True)
    normal = WorkloadTask(NORMAL, options.network(NORMAL), Uniform(rates[1]), in_flight=deep)
    even = scales[0] if scales[0] == scales[1] else None
    rounded = tuple(round(rate, 3) for rate in rates)
    return Workload(name, (critical, normal), Point(scale=even, rates_hz=rounded))


def _alone_s(options: Options, machine: Machine, executor: Executor) -> dict[str, float]:
    """Each network's service alone, in seconds."""
    found = {}
    jobs = [_probe(options, machine, network) for network in RATES_HZ]
    for network, record in zip(RATES_HZ, executor.run(jobs), strict=True):
        alone_ns = record.tasks[0].service.percentile(50)
        if alone_ns is None:
            raise ExecutionError(f"{network} alone completed nothing in {_PROBE_NS} ns")
        found[network] = alone_ns / 1e9
    return found


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
        enough=_PROBED,
    )
