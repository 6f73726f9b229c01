"""Miriam: normal steps co-run as shards that fit what each critical step leaves over.

For every (critical step, normal step) the shaded tree is evaluated beforehand: of its head
shards within what is left over (Eq. 2, and leftover.py for what Eq. 2 does not see), the one with
the best WIScore * OScore becomes the grant (sections 2 and 3 of arXiv 2307.04339). What is
dynamic, how much is left and where a shard ends, is the step's counter on the device. Alone, a
normal step has the whole GPU: the original kernel when it is short, the elastic form, which can
be asked to leave, when it is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.gates import YIELD_TARGET_NS
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
from miriam.kernels import GpuSpec
from miriam.shrink import Critical, Overheads, Space

WAITING_NS = 100_000
"""A step that is held waits for whole critical steps; overhead up to that long is bearable."""


@dataclass(frozen=True, slots=True)
class Miriam:
    """Shards beside critical kernels, everything when alone."""

    name: str = "miriam"
    yield_target_ns: int = YIELD_TARGET_NS

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

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)

    def _step(self, elastic: bool, step_ns: int) -> StepPlan:
        if not elastic:
            return StepPlan(Level.GATE, Level.GATE)
        long = step_ns >= self.yield_target_ns
        return StepPlan(Level.GRANT, Level.YIELD if long else Level.GATE)

    def _table(self, mix: Mix, critical: int, normal: int) -> GrantTable:
        beside = _timed(mix, normal)
        return tuple(
            tuple(self._grant(mix.gpu, current, step) for step in beside)
            for current in _timed(mix, critical)
        )

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


POLICY = Miriam()
