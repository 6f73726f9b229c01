"""Two AlexNets in depth (section 8.4): occupancy per layer, and what runs where."""

from __future__ import annotations

from collections.abc import Sequence

from miriam.bench.arrivals import Closed
from miriam.bench.benchmark import Cell
from miriam.bench.execute import Executor
from miriam.bench.options import Options
from miriam.bench.workloads import Workload, WorkloadTask
from miriam.errors import UnknownNameError

TITLE = "Two AlexNets"
POLICIES = ("miriam", "multistream", "sequential")
WORKLOADS = ("alexnets",)


def cells(options: Options, executor: Executor) -> Sequence[Cell]:
    """One critical and one normal AlexNet, both closed loop."""
    for name in options.workloads:
        if name not in WORKLOADS:
            raise UnknownNameError("workload", name, WORKLOADS)
    network, deep = options.network("alexnet"), options.in_flight
    tasks = (
        WorkloadTask("critical", network, Closed(), critical=True),
        WorkloadTask("normal", network, Closed(deep), in_flight=deep),
    )
    machine = options.machine
    return [Cell(machine, Workload(name, tasks), deep=True) for name in options.workloads]
