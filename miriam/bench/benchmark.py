"""A whole benchmark: every workload under every policy, beside each task alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from miriam.bench.arrivals import Poisson
from miriam.bench.execute import Executor
from miriam.bench.jobs import Job, JobRecord, TaskRecord
from miriam.bench.machine import Machine
from miriam.bench.metrics import BenchResult, RowFigures, TaskFigures
from miriam.bench.options import Options
from miriam.bench.workloads import Point, Workload, WorkloadTask
from miriam.coordinator import policies
from miriam.errors import UsageError

ENOUGH = 1_000
"""A closed loop alone ends after so many requests: a p99 needs no more, and it only repeats."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A workload on a machine; ``deep``: with a closer look at it."""

    machine: Machine
    workload: Workload
    deep: bool = False


def run_cells(
    options: Options, title: str, cells: Sequence[Cell], executor: Executor
) -> BenchResult:
    """Every cell under every policy, in this order, as one result called ``title``.

    What a task does alone is found once for all rows. UsageError if a name occurs twice.
    """
    names = [cell.workload.name for cell in cells]
    if len(set(names)) != len(names):
        raise UsageError("workload", "at least one name, each once", ",".join(names))
    for policy in options.policies:
        policies.get(policy)
    # A real device is compared with itself of the same minute.
    batches = [cells] if cells[0].machine.simulated else [[cell] for cell in cells]
    return BenchResult(
        device=options.device,
        simulated=cells[0].machine.simulated,
        seed=options.seed,
        policies=options.policies,
        rows=tuple(row for batch in batches for row in _batch(options, batch, executor)),
        title=title,
        options=options,
    )


def _batch(options: Options, cells: Sequence[Cell], executor: Executor) -> list[RowFigures]:
    solos: dict[Job, None] = {}
    for cell in cells:
        solos |= dict.fromkeys(_solo(options, cell, task) for task in cell.workload.ordered)
    places = [(cell, policy) for cell in cells for policy in options.policies]
    rows = [_job(options, cell, policy) for cell, policy in places]
    # The rows first: they take longest.
    records = executor.run([*rows, *solos])
    alone = dict(zip(solos, records[len(rows) :], strict=True))
    return [
        _row(options, cell, policy, record, alone)
        for (cell, policy), record in zip(places, records, strict=False)
    ]


def _job(options: Options, cell: Cell, policy: str) -> Job:
    return Job(
        machine=cell.machine,
        workload=cell.workload.name,
        tasks=cell.workload.ordered,
        policy=policy,
        window_ns=options.window_ns,
        seed=options.seed,
        compute=options.compute,
        deep=cell.deep,
    )


def _solo(options: Options, cell: Cell, task: WorkloadTask) -> Job:
    """The task alone, with plain kernels; equal for all workloads whose arrivals are equal."""
    by_chance = isinstance(task.arrivals, Poisson)
    name = task.name if by_chance else task.network
    return Job(
        machine=cell.machine,
        workload=cell.workload.name if by_chance else "",
        tasks=(replace(task, name=name, critical=False, priority=0),),
        policy="multistream",
        window_ns=options.window_ns,
        seed=options.seed,
        compute=options.compute and not cell.machine.simulated,
        solo=True,
        enough=ENOUGH if task.arrivals.closed else None,
    )


def _row(
    options: Options, cell: Cell, policy: str, record: JobRecord, alone: Mapping[Job, JobRecord]
) -> RowFigures:
    workload = cell.workload
    figures = [
        _figures(task.name, done, alone[_solo(options, cell, task)].tasks[0])
        for task, done in zip(workload.ordered, record.tasks, strict=True)
    ]
    split = len(workload.critical)
    drifts = [alone[_solo(options, cell, task)].drift for task in workload.critical]
    return RowFigures(
        workload=workload.name,
        policy=policy,
        in_flight=max((task.in_flight for task in workload.normal), default=0),
        critical=tuple(figures[:split]),
        normal=tuple(figures[split:]),
        achieved_occupancy=record.achieved_occupancy,
        verified=record.verified,
        faults=record.faults,
        point=_point(cell),
        deep=record.deep,
        yields=record.yields,
        drift=max((d for d in drifts if d is not None), default=None),
    )


def _point(cell: Cell) -> Point:
    """Where the row stands; on a real device always with the world that it was measured in."""
    point = cell.workload.point
    if cell.machine.simulated or point.world is not None:
        return point
    return replace(point, world=cell.machine.name)


def _figures(name: str, done: TaskRecord, alone: TaskRecord) -> TaskFigures:
    return TaskFigures(
        task=name,
        latency=done.latency,
        service=done.service,
        solo_latency=alone.latency,
        solo_service=alone.service,
        rate_hz=done.rate_hz,
        solo_rate_hz=alone.rate_hz,
        beside_hz=done.beside_hz,
    )
