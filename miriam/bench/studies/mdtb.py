"""MDTB, the paper's benchmark (section 8.1): four pairs of networks, A to D."""

from __future__ import annotations

from collections.abc import Sequence

from miriam.bench.arrivals import Arrivals, Closed, Poisson, Uniform
from miriam.bench.benchmark import Cell
from miriam.bench.execute import Executor
from miriam.bench.options import Options
from miriam.bench.workloads import Workload, WorkloadTask
from miriam.errors import UnknownNameError

TITLE = "MDTB"
POLICIES = ("miriam", "gate", "multistream", "sequential")
PAIRS: dict[str, tuple[str, Arrivals, str]] = {
    "A": ("alexnet", Closed(), "cifarnet"),
    "B": ("squeezenet", Uniform(hz=10), "alexnet"),
    "C": ("gru", Poisson(hz=10), "resnet50"),
    "D": ("lstm", Uniform(hz=10), "squeezenet"),
}
WORKLOADS = tuple(PAIRS)


def cells(options: Options, executor: Executor) -> Sequence[Cell]:
    """The workloads asked for; the normal task runs closed loop, ``in_flight`` deep."""
    machine = options.machine
    return [Cell(machine, workload(name, options)) for name in options.workloads]


def workload(name: str, options: Options) -> Workload:
    """The MDTB workload called ``name``; UnknownNameError lists the known names."""
    if name not in PAIRS:
        raise UnknownNameError("workload", name, PAIRS)
    critical, arrivals, normal = PAIRS[name]
    deep = options.in_flight
    return Workload(
        name,
        (
            WorkloadTask(critical, options.network(critical), arrivals, critical=True),
            WorkloadTask(normal, options.network(normal), Closed(deep), in_flight=deep),
        ),
    )
