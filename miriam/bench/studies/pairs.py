"""Pairs: a grid of critical network x normal network x gap x world.

The gap is the time from a critical request's completion to the next one's arrival: how much of
the time a critical request is running. A world is the GPU limited to some SMs. Among the pairs
are those of Fig. 2 of the paper: one critical network beside several others.
"""

from __future__ import annotations

from collections.abc import Sequence

from miriam.bench.arrivals import Closed
from miriam.bench.benchmark import Cell
from miriam.bench.execute import Executor
from miriam.bench.options import Options
from miriam.bench.pytorch import is_captured, require
from miriam.bench.workloads import Point, Workload, WorkloadTask

TITLE = "Pairs"
POLICIES = ("miriam", "gate", "multistream", "sequential")
WORKLOADS = (
    "resnet50+alexnet",
    "resnet50+squeezenet",
    "resnet50+cifarnet",
    "squeezenet+alexnet",
    "alexnet+squeezenet",
    "lstm+squeezenet",
)
GAPS_US = (0.0, 1_000.0, 4_000.0, 10_000.0)
WORLDS = (0,)


def cells(options: Options, executor: Executor) -> Sequence[Cell]:
    """Every pair at every gap in every world; a pair is ``critical+normal``.

    A PyTorch model is one as ``miriam.bench.pytorch.require`` has it, a network one of ours.
    """
    return [
        _cell(options, pair, gap_us, sms)
        for sms in options.worlds
        for pair in options.workloads
        for gap_us in options.gaps_us
    ]


def _cell(options: Options, pair: str, gap_us: float, sms: int) -> Cell:
    critical, normal = options.pair(pair)
    machine = options.machine
    if sms:
        machine = machine.world(sms)
    names = (f"{critical}*", normal) if critical == normal else (critical, normal)
    deep = options.in_flight
    tasks = (
        WorkloadTask(
            names[0],
            _network(options, critical),
            Closed(gap_ns=round(gap_us * 1_000)),
            critical=True,
        ),
        WorkloadTask(names[1], _network(options, normal), Closed(deep), in_flight=deep),
    )
    name = f"{pair} {gap_us / 1_000:g} ms"
    if len(options.worlds) > 1:
        name += f" {machine.name}"
    return Cell(machine, Workload(name, tasks, Point(gap_us=gap_us, world=machine.name)))


def _network(options: Options, name: str) -> str:
    if not is_captured(name):
        return options.network(name)
    require(name, options)
    return name
