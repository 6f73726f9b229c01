"""Miriam: normal steps co-run as shards that fit what each critical step leaves over.

For every (critical step, normal step) the shaded tree is evaluated beforehand: of its head
shards within Eq. 2's limits, the one with the best WIScore * OScore becomes the grant (sections
2 and 3 of arXiv 2307.04339). What is dynamic, how much is left and where a shard ends, is the
step's counter on the device. Alone, a normal step has the whole GPU: the original kernel when
it is short, the elastic form, which can be asked to leave, when it is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.gates import YIELD_TARGET_NS
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
from miriam.kernels import KernelSpec
from miriam.shrink import Critical, Overheads, Space


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
        known: dict[tuple[int, int], tuple[Grant, ...]] = {}
        rows = []
        for step in mix.tasks[critical].program.steps:
            key = (step.kernel.blocks, step.kernel.threads)
            if key not in known:
                known[key] = self._row(mix, Critical(*key), normal)
            rows.append(known[key])
        return tuple(rows)

    def _row(self, mix: Mix, critical: Critical, normal: int) -> tuple[Grant, ...]:
        steps = zip(mix.tasks[normal].program.steps, mix.step_ns[normal], strict=True)
        return tuple(
            self._grant(mix, critical, step.kernel, step_ns) if step.rigid is None else CLOSED
            for step, step_ns in steps
        )

    def _grant(self, mix: Mix, critical: Critical, kernel: KernelSpec, step_ns: int) -> Grant:
        # One resident form claims all its shards, so a fragment costs a claim and no launch.
        overheads = Overheads.of_solo(step_ns, relaunch_ns=0)
        kept = Space(mix.gpu, critical, kernel, overheads).prune().kept
        return Grant(kept[0].blocks, kept[0].threads) if kept else CLOSED


POLICY = Miriam()
