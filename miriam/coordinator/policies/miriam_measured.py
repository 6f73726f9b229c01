"""Miriam by measurement: normal steps co-run where that was measured to be worth its cost.

Before the first request the device runs every unit of a normal request (a long step, or short
steps behind one gate) beside a critical one, under a few grants, and measures segment by segment
how much slower the one gets and how far the other comes (corun.py). Plans are made of that which
let normal work go on beside more and more segments, first where it costs least for what it gets
done (budget.py). Each is tried with all tasks, in closed loops of critical requests and with pauses
between them, and of those that keep to ``budget`` in both the one counts under which most gets
done. The design space is that of arXiv 2307.04339 (section 2), pruned further: what a grant costs
depends on caches, queues and bandwidth as much as on the places that Eq. 2 counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from miriam.coordinator.budget import HELD, Offer, dear, offers, within
from miriam.coordinator.corun import CoRun, Trial, is_long, segments, units
from miriam.coordinator.gates import check_yield_share, gate_levels, yield_target_ns
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
from miriam.coordinator.policies import multistream, partition, vacate
from miriam.coordinator.policy import Policy, Snapshot, Waiting, admit_in_flight
from miriam.coordinator.split import split
from miriam.coordinator.task import Mix, Steps
from miriam.errors import MissingCapabilityError, UsageError
from miriam.kernels import GpuSpec, Step

_SHARES = (1.0, 0.5, 0.25)
"""Blocks of a limited grant per SM. A quarter was the cheapest in a run on an H200 whose figures
were not kept: on 32 SMs 8 blocks of ResNet-50 cost SqueezeNet 4 % and went at 0.2 of their rate
alone, all blocks 100 % at 0.7."""

OF_REQUEST = (0.05, 0.1, 0.2, 0.4)
OF_ALL = (0.1, 0.25, 0.5, 1.1)
"""What the candidates may cost by their estimates, as shares of the critical request's time alone,
and of what it costs to open everything: where the one is coarse, the other is not. The last has
room for costs in whole parts."""

WIDER = (0.1, 0.2)
"""Yield shares at which holding everything is tried too: gates cost the normal work time, also
where no critical request runs. What it costs that work leaves later, pauses between critical
requests are to show; beside closed loops hardly anything runs when a request begins."""

OTHERS: tuple[Policy, ...] = (
    multistream.MultiStream(),
    *(vacate.Vacate(share=share) for share in (0.5, 0.75)),
    *(partition.Partition(share=share) for share in (0.5, 0.75)),
)
"""Where a plan that needs no measurement is the best one, it is tried as well."""

CRITICAL_SHARE = 0.75
"""Share of the SMs that confined normal work leaves alone, as under `vacate`."""

WRITE_NS = 8_000
"""Until a control write has arrived, about (docs/results/device.md)."""

FOLDED_FROM_NS = 100_000
"""A second form in a step's graph costs a node of it, 1 us, also where nothing runs beside it."""


@dataclass(frozen=True, slots=True)
class _Opening:
    """What a candidate may cost, by its estimate: shares of `OF_REQUEST` and of `OF_ALL`.

    Nothing is opened for neither. ``sparing``: the dear units are held all the time (budget.py).
    """

    of_request: float = 0.0
    of_all: float = 0.0
    sparing: bool = False


@dataclass(frozen=True, slots=True)
class MiriamMeasured:
    """Measured plans. ``budget``: how much longer the 99th percentile (simulated: the 95th) of a
    critical request's service may be than with all normal work held, as a share of it.
    ``yield_share``: how long normal work may take to leave, as a share of the critical request's
    time alone, where that is more than the yield target.
    """

    name: str = "miriam-measured"
    budget: float = 0.1
    yield_share: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.budget < inf:
            raise UsageError(
                "policy miriam-measured budget", "a finite share, not negative", self.budget
            )
        check_yield_share(self.name, self.yield_share)

    def trials(self, mix: Mix, critical: int, normal: int) -> Sequence[Trial]:
        """Every segment with every unit, under each grant that the unit could have.

        None where a normal step is rigid: its blocks do not claim, so nobody sees how far it comes,
        and beside a segment all units go on or none.
        """
        steps, step_ns = mix.tasks[normal].program.steps, mix.step_ns[normal]
        if any(step.rigid is not None for step in steps):
            return []
        return [
            Trial(segment, unit, grant)
            for unit in units(step_ns, yield_target_ns(mix, self.yield_share))
            for grant in _grants(mix.gpu, steps, step_ns, unit)
            for segment in segments(mix.step_ns[critical])
        ]

    def candidates(self, mix: Mix) -> Sequence[Plan]:
        """Plans from holding everything to opening everything, with fewer gates, and `OTHERS`.

        The last where all tasks were measured: captured ones were not, and can not be confined.
        """
        costs = [*((share, 0.0) for share in OF_REQUEST), *((0.0, share) for share in OF_ALL)]
        openings = [_Opening(*cost, sparing) for sparing in (False, True) for cost in costs]
        plans = [self._opening(mix, opening) for opening in (_Opening(), *openings)]
        wider = [replace(self, yield_share=share) for share in WIDER if share > self.yield_share]
        plans += [policy._opening(mix, _Opening()) for policy in wider]
        if mix.coruns and all(mix.coruns.values()) and mix.gpu.sm_groups > 1:
            plans += [policy.plan(mix) for policy in OTHERS]
        return [plan for place, plan in enumerate(plans) if plan not in plans[:place]]

    def plan(self, mix: Mix) -> Plan:
        """The best candidate within the budget; MissingCapabilityError where none was tried."""
        if not mix.candidates:
            raise MissingCapabilityError(
                f"policy {self.name}",
                "a device that measures steps beside each other",
                "choose a device sim:<GPU> or cuda:<GPU>, or the policy miriam, which estimates",
            )
        held = mix.candidates[0]
        kept = [c for c in mix.candidates if c.slowdown <= 1 + self.budget]
        # How often critical requests come nobody knows: both gains count the same.
        return max(kept, key=lambda c: c.gain + c.paused_gain, default=held).plan

    def _opening(self, mix: Mix, opening: _Opening) -> Plan:
        grants = {(c, n): self._table(mix, c, n, opening) for c in mix.critical for n in mix.normal}
        tasks = []
        for i, task in enumerate(mix.tasks):
            steps = (ORDERED,) * len(task.program.steps)
            if not task.critical:
                tables = [table for (_, n), table in grants.items() if n == i]
                steps = _levels(mix, i, tables, yield_target_ns(mix, self.yield_share))
            tasks.append(TaskPlan(mix.stream_priority(i), steps))
        return Plan(tuple(tasks), grants)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)

    def _table(self, mix: Mix, critical: int, normal: int, opening: _Opening) -> GrantTable:
        critical_ns, normal_ns = mix.step_ns[critical], mix.step_ns[normal]
        target_ns = yield_target_ns(mix, self.yield_share)
        leaves_ns = {unit: _leaves_ns(mix, normal, unit) for unit in units(normal_ns, target_ns)}
        offered = _offered(mix, (critical, normal), leaves_ns, opening)
        table = [[CLOSED] * len(normal_ns) for _ in critical_ns]
        for segment, offer, following in zip(
            segments(critical_ns), offered, [*offered[1:], offered[-1]], strict=True
        ):
            for unit, grant in offer.grants.items():
                first, stop = segment
                if following is HELD:
                    stop = _leaving_from(critical_ns, segment, leaves_ns[unit])
                for step in range(first, stop):
                    table[step][slice(*unit)] = [grant] * (unit[1] - unit[0])
        return tuple(map(tuple, table))


def _offered(
    mix: Mix,
    pair: tuple[int, int],
    leaves_ns: Mapping[Steps, float],
    opening: _Opening,
) -> tuple[Offer, ...]:
    """What the normal task of ``pair`` may hold beside each segment of the critical one."""
    critical, normal = pair
    critical_ns, normal_ns = mix.step_ns[critical], mix.step_ns[normal]
    if not opening.of_request + opening.of_all:
        return (HELD,) * len(segments(critical_ns))
    units_ns = {unit: max(1, sum(normal_ns[slice(*unit)])) for unit in leaves_ns}
    if opening.sparing:
        for unit in dear(mix.coruns[pair], units_ns):
            del units_ns[unit]
    mean_ns = sum(leaves_ns[u] * ns for u, ns in units_ns.items()) / sum(units_ns.values())
    beside: dict[Steps, list[CoRun]] = {segment: [] for segment in segments(critical_ns)}
    for corun in mix.coruns[pair]:
        beside[corun.trial.critical].append(corun)
    choices, early = [], []
    for segment, coruns in beside.items():
        segment_ns = max(1, sum(critical_ns[slice(*segment)]))
        end = _leaving_from(critical_ns, segment, mean_ns)
        choices.append(offers(coruns, units_ns, segment_ns))
        early.append(sum(critical_ns[segment[0] : end]) / segment_ns)
    most_ns = sum(max(offer.cost_ns for offer in offered) for offered in choices)
    request_ns = sum(critical_ns) / len(mix.normal)
    return within(choices, early, opening.of_request * request_ns + opening.of_all * most_ns)


def _leaves_ns(mix: Mix, task: int, unit: Steps) -> float:
    """How long before a segment ends ``unit`` has to be told to be gone by then."""
    steps, step_ns = mix.tasks[task].program.steps, mix.step_ns[task]
    first, stop = unit
    if is_long(step_ns, unit):
        return WRITE_NS + TimedStep(steps[first], step_ns[first]).block_ns(mix.gpu)
    return WRITE_NS + sum(step_ns[first:stop])


def _levels(
    mix: Mix, task: int, tables: Sequence[GrantTable], target_ns: int
) -> tuple[StepPlan, ...]:
    """How the steps of a normal task run under the grants ``tables``.

    In its elastic form where it may hold a part of its blocks, or where stopping it saves more than
    ``target_ns`` over waiting for its end.
    """
    steps, step_ns = mix.tasks[task].program.steps, mix.step_ns[task]
    found = []
    for i, level in enumerate(gate_levels(step_ns, target_ns)):
        held = [row[i] for table in tables for row in table if row[i].blocks]
        part = any(grant.sms or grant.blocks < steps[i].kernel.blocks for grant in held)
        saved_ns = step_ns[i] - TimedStep(steps[i], step_ns[i]).block_ns(mix.gpu)
        elastic = steps[i].rigid is None and (part or saved_ns >= target_ns)
        found.append(StepPlan(Level.GRANT, Level.YIELD) if elastic else StepPlan(level, level))
    return tuple(found)


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
    """What ``unit`` could hold: everything, and if it is a long step, less.

    Less are all its blocks on some SMs, or some blocks anywhere.
    """
    first = unit[0]
    yield UNLIMITED
    if not is_long(step_ns, unit):
        return
    if gpu.sm_groups > 1:
        yield Grant(UNLIMITED.blocks, sms=split(gpu, CRITICAL_SHARE)[1])
    kernel = steps[first].kernel
    folds = 2 if step_ns[first] >= FOLDED_FROM_NS else 1
    for threads in [v.threads for v in kernel.variants][:folds]:
        for share in _SHARES:
            blocks = round(share * gpu.sms)
            if 1 <= blocks < kernel.blocks:
                yield Grant(blocks, threads, ahead=True)


POLICY = MiriamMeasured()
