"""Miriam: normal steps co-run as shards that fit what each critical step leaves over.

For every (critical step, normal step) the shaded tree is evaluated beforehand: of its head
shards within what is left over (Eq. 2, and leftover.py for what Eq. 2 does not see), the one with
the best WIScore * OScore becomes the grant (sections 2 and 3 of arXiv 2307.04339). A normal step
that gets none beside any critical step gets openings within a budget (ladder.py). What is
dynamic, how much is left and where a shard ends, is the step's counter on the device. Alone, a
normal step has the whole GPU: the original kernel when it is short, the elastic form, which can
be asked to leave, when it is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from miriam.coordinator.gates import YIELD_TARGET_NS
from miriam.coordinator.ladder import BUDGET, openings, rungs
from miriam.coordinator.leftover import TimedStep, left_beside
from miriam.coordinator.plan import (
    CLOSED,
    ORDERED,
    Grant,
    GrantTable,
    Level,
    Plan,
    StepPlan,
    TaskPlan,
)
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix
from miriam.errors import UsageError
from miriam.kernels import GpuSpec
from miriam.shrink import Critical, Overheads, Space

WAITING_NS = 100_000
"""A step that is held waits for whole critical steps; overhead up to that long is bearable."""


@dataclass(frozen=True, slots=True)
class Miriam:
    """Shards beside critical kernels, everything when alone.

    ``budget``: share of a critical task's time alone that a normal step may cost it which could
    run beside none of its steps (`ladder`); 0 lets such a step wait for the task to pause.
    """

    name: str = "miriam"
    yield_target_ns: int = YIELD_TARGET_NS
    budget: float = BUDGET

    def __post_init__(self) -> None:
        if not 0 <= self.budget < inf:
            raise UsageError("policy miriam budget", "a finite share, not negative", self.budget)

    def plan(self, mix: Mix) -> Plan:
        """A grant for every (critical step, normal step)."""
        tasks = []
        for i, task in enumerate(mix.tasks):
            steps = (ORDERED,) * len(task.program.steps)
            if not task.critical:
                steps = tuple(
                    self._step(step.rigid is None, step_ns)
                    for step, step_ns in zip(task.program.steps, mix.step_ns[i], strict=True)
                )
            tasks.append(TaskPlan(mix.stream_priority(i), steps))
        grants = {(c, n): self._table(mix, c, n) for c in mix.critical for n in mix.normal}
        return Plan(tuple(tasks), grants)

    def rungs(self, mix: Mix) -> tuple[Plan, ...]:
        """The ladder of plans for ``mix``, from closed to everything."""
        return rungs(lambda budget: replace(self, budget=budget).plan(mix))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)

    def _step(self, elastic: bool, step_ns: int) -> StepPlan:
        if not elastic:
            return StepPlan(Level.GATE, Level.GATE)
        long = step_ns >= self.yield_target_ns
        return StepPlan(Level.GRANT, Level.YIELD if long else Level.GATE)

    def _table(self, mix: Mix, critical: int, normal: int) -> GrantTable:
        current, beside = _timed(mix, critical), _timed(mix, normal)
        places, firsts = _alike(current), _alike(beside)
        columns = {
            first: self._column(mix.gpu, current, places, beside[first]) for first in set(firsts)
        }
        return tuple(zip(*(columns[first] for first in firsts), strict=True))

    def _column(
        self,
        gpu: GpuSpec,
        critical: Sequence[TimedStep],
        places: Sequence[int],
        normal: TimedStep,
    ) -> tuple[Grant, ...]:
        """The grants of one normal step, beside every critical one; ``places`` as `_alike`."""
        known = {place: self._grant(gpu, critical[place], normal) for place in set(places)}
        grants = [known[place] for place in places]
        if normal.step.rigid is None and all(grant == CLOSED for grant in grants):
            for step, grant in openings(gpu, critical, normal, self.budget).items():
                grants[step] = grant
        return tuple(grants)

    def _grant(self, gpu: GpuSpec, critical: TimedStep, normal: TimedStep) -> Grant:
        room = left_beside(gpu, critical, normal)
        if normal.step.rigid is not None or room is None:
            return CLOSED
        current, kernel = critical.step.kernel, normal.step.kernel
        # One resident form claims all its shards, so a fragment costs a claim and no launch.
        overheads = Overheads.of_solo(normal.alone_ns, least_ns=WAITING_NS, relaunch_ns=0)
        running = Critical(current.blocks, current.threads)
        kept = Space(gpu, running, kernel, overheads, room=room).prune().kept
        return Grant(kept[0].blocks, kept[0].threads, ahead=True) if kept else CLOSED


def _timed(mix: Mix, task: int) -> tuple[TimedStep, ...]:
    steps = mix.tasks[task].program.steps
    return tuple(TimedStep(*pair) for pair in zip(steps, mix.step_ns[task], strict=True))


def _alike(steps: Sequence[TimedStep]) -> list[int]:
    """For each step the place of the first one that every decision takes for the same."""
    first: dict[object, int] = {}
    return [
        first.setdefault((t.step.kernel, t.step.cost, t.step.rigid, t.alone_ns), place)
        for place, t in enumerate(steps)
    ]


POLICY = Miriam()
