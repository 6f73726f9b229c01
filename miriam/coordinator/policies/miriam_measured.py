"""Miriam by measurement: normal steps co-run where that was measured to be worth its cost.

Before the first request the device runs every unit of a normal request (a long step, or short
steps behind one gate) beside every segment of a critical one, under a few grants, and measures how
much slower the one gets and how far the other comes (corun.py). Each unit then gets the grants that
bring it most while they cost the critical request no more than ``budget`` of its time alone
(budget.py); what does not fit is held, and runs in the pauses between critical requests. The design
space is that of arXiv 2307.04339 (section 2), pruned further: what a grant costs depends on caches,
queues and bandwidth as much as on the places that Eq. 2 counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from miriam.coordinator.budget import Stretch, within
from miriam.coordinator.corun import CoRun, Trial, is_long, segments, units
from miriam.coordinator.gates import YIELD_TARGET_NS, gate_levels
from miriam.coordinator.leftover import TimedStep
from miriam.coordinator.plan import (
    CLOSED,
    ORDERED,
    UNLIMITED,
    Grant,
    GrantTable,
    Level,
    Plan,
    StepPlan,
    TaskPlan,
)
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix, Steps
from miriam.errors import MissingCapabilityError, UsageError
from miriam.kernels import GpuSpec, Step

_SHARES = (1.0, 0.5, 0.25)
"""Blocks of a limited grant per SM; a grant of more than one per SM was hardly ever cheaper than
no limit at all."""


WRITE_NS = 8_000
"""Until a control write has arrived (docs/results/device.md)."""

FOLDED_FROM_NS = 100_000
"""A second form in a step's graph costs a node of it, 1 us, also where nothing runs beside it."""


@dataclass(frozen=True, slots=True)
class MiriamMeasured:
    """Grants by measured cost and gain; ``budget``: as a share of the critical time alone.

    Of several normal tasks each gets an equal part of the budget.
    """

    name: str = "miriam-measured"
    budget: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.budget < inf:
            raise UsageError("policy miriam-measured budget", "a share, not negative", self.budget)

    def trials(self, mix: Mix, critical: int, normal: int) -> Sequence[Trial]:
        """Every segment with every unit, under each grant that the unit could have."""
        steps, step_ns = mix.tasks[normal].program.steps, mix.step_ns[normal]
        return [
            Trial(segment, unit, grant)
            for unit in units(step_ns)
            for grant in _grants(mix.gpu, steps, step_ns, unit)
            for segment in segments(mix.step_ns[critical])
        ]

    def plan(self, mix: Mix) -> Plan:
        """The grants within the budget; MissingCapabilityError where nothing was measured."""
        grants = {(c, n): self._table(mix, c, n) for c in mix.critical for n in mix.normal}
        tasks = []
        for i, task in enumerate(mix.tasks):
            steps = (ORDERED,) * len(task.program.steps)
            if not task.critical:
                tables = [table for (_, n), table in grants.items() if n == i]
                steps = _levels(mix, i, tables)
            tasks.append(TaskPlan(mix.stream_priority(i), steps))
        return Plan(tuple(tasks), grants)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)

    def _table(self, mix: Mix, critical: int, normal: int) -> GrantTable:
        if (critical, normal) not in mix.coruns:
            raise MissingCapabilityError(
                f"policy {self.name}",
                "a device that measures steps beside each other",
                "choose a device cuda:<GPU>, or the policy miriam, which estimates",
            )
        critical_ns, normal_ns = mix.step_ns[critical], mix.step_ns[normal]
        by_unit: dict[Steps, list[CoRun]] = {unit: [] for unit in units(normal_ns)}
        for corun in mix.coruns[critical, normal]:
            by_unit[corun.trial.normal].append(corun)
        budget_ns = self.budget * sum(critical_ns) / len(mix.normal)
        table = [[CLOSED] * len(normal_ns) for _ in critical_ns]
        for unit, coruns in by_unit.items():
            column = _column(critical_ns, coruns, budget_ns, self._leaves_ns(mix, normal, unit))
            for step, grant in enumerate(column):
                table[step][slice(*unit)] = [grant] * (unit[1] - unit[0])
        return tuple(map(tuple, table))

    def _leaves_ns(self, mix: Mix, task: int, unit: Steps) -> float:
        """How long before a segment ends ``unit`` has to be told to be gone by then."""
        steps, step_ns = mix.tasks[task].program.steps, mix.step_ns[task]
        first, stop = unit
        if is_long(step_ns, unit) and steps[first].rigid is None:
            return WRITE_NS + TimedStep(steps[first], step_ns[first]).block_ns(mix.gpu)
        return WRITE_NS + sum(step_ns[first:stop])


def _levels(mix: Mix, task: int, tables: Sequence[GrantTable]) -> tuple[StepPlan, ...]:
    """How the steps of a normal task run under the grants ``tables``.

    In its elastic form where it may hold a part of its blocks, or where stopping it saves more than
    the yield target over waiting for its end.
    """
    steps, step_ns = mix.tasks[task].program.steps, mix.step_ns[task]
    found = []
    for i, level in enumerate(gate_levels(step_ns)):
        blocks = steps[i].kernel.blocks
        part = any(0 < row[i].blocks < blocks for table in tables for row in table)
        saved_ns = step_ns[i] - TimedStep(steps[i], step_ns[i]).block_ns(mix.gpu)
        elastic = steps[i].rigid is None and (part or saved_ns >= YIELD_TARGET_NS)
        found.append(StepPlan(Level.GRANT, Level.YIELD) if elastic else StepPlan(level, level))
    return tuple(found)


def _column(
    critical_ns: Sequence[int], coruns: Sequence[CoRun], budget_ns: float, leaves_ns: float
) -> list[Grant]:
    """The grants of one unit, by critical step."""
    ranges = segments(critical_ns)
    ends = [_leaving_from(critical_ns, segment, leaves_ns) for segment in ranges]
    stretches = []
    for (first, stop), end in zip(ranges, ends, strict=True):
        alone_ns = sum(critical_ns[first:stop])
        stretches.append(Stretch((first, stop), alone_ns, sum(critical_ns[first:end]) / alone_ns))
    grants = within(coruns, stretches, budget_ns)
    column: list[Grant] = []
    for place, ((first, stop), end) in enumerate(zip(ranges, ends, strict=True)):
        grant, following = grants[place], grants[min(place + 1, len(grants) - 1)]
        if following.blocks >= grant.blocks:
            end = stop
        column += [grant] * (end - first) + [following] * (stop - end)
    return column


def _leaving_from(critical_ns: Sequence[int], segment: Steps, leaves_ns: float) -> int:
    """The last step of ``segment`` before which ``leaves_ns`` and more are left of it."""
    first, stop = segment
    step, left_ns = stop, 0
    while step > first and left_ns < leaves_ns:
        step -= 1
        left_ns += critical_ns[step]
    return step


def _grants(
    gpu: GpuSpec, steps: Sequence[Step], step_ns: Sequence[int], unit: Steps
) -> Iterator[Grant]:
    """What ``unit`` could hold: everything, and if it is a long elastic step, less."""
    first = unit[0]
    yield UNLIMITED
    if not is_long(step_ns, unit) or steps[first].rigid is not None:
        return
    kernel = steps[first].kernel
    folds = 2 if step_ns[first] >= FOLDED_FROM_NS else 1
    for threads in [v.threads for v in kernel.variants][:folds]:
        for share in _SHARES:
            blocks = round(share * gpu.sms)
            if 1 <= blocks < kernel.blocks:
                yield Grant(blocks, threads, ahead=True)


POLICY = MiriamMeasured()
