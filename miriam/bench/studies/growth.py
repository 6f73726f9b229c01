"""Growth: one critical network beside 1, 2, 4 and 8 normal ones, and two critical ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from miriam.bench.arrivals import Closed, Uniform
from miriam.bench.benchmark import Cell
from miriam.bench.execute import Executor
from miriam.bench.options import Options
from miriam.bench.workloads import Point, Workload, WorkloadTask
from miriam.errors import UnknownNameError

TITLE = "Growth"
POLICIES = ("miriam", "gate", "multistream", "sequential")
COUNTS = {"1": 1, "2": 2, "4": 4, "8": 8, "two critical": 4}
WORKLOADS = tuple(COUNTS)
CRITICAL_HZ = 100.0
NORMALS = ("alexnet", "squeezenet", "resnet50", "cifarnet")


def cells(options: Options, executor: Executor) -> Sequence[Cell]:
    """SqueezeNet at 100 Hz, critical, beside closed loops of the other networks in turn."""
    machine = options.machine
    return [Cell(machine, _workload(options, name)) for name in options.workloads]


def _workload(options: Options, name: str) -> Workload:
    if name not in COUNTS:
        raise UnknownNameError("workload", name, COUNTS)
    critical = ["squeezenet"] if name.isdecimal() else ["squeezenet", "lstm"]
    tasks = [
        WorkloadTask(
            f"{network} (critical)",
            options.network(network),
            Uniform(CRITICAL_HZ),
            critical=True,
            priority=rank,
        )
        for rank, network in enumerate(critical)
    ]
    # One request of each in flight: the number of tasks is what grows.
    tasks += [
        WorkloadTask(f"{network} {number}", options.network(network), Closed())
        for number, network in enumerate(islice(cycle(NORMALS), COUNTS[name]), start=1)
    ]
    return Workload(name, tuple(tasks), Point(normals=COUNTS[name]))
