"""Orion-like: a normal kernel beside a critical one of the opposite profile, if it is small.

Strati et al., "Orion: Interference-aware, Fine-grained GPU Sharing for ML Applications", EuroSys
2024: a best-effort kernel is submitted when no high-priority kernel runs, or when it needs fewer
SMs than a threshold and one of the two is bound by computing, the other by memory. There a host
thread intercepts every launch, profiles come from Nsight Compute with a third class (unknown,
which goes beside anything), the threshold is searched per workload, and the time of outstanding
best-effort kernels is bounded. Here the rule is evaluated beforehand for each (critical step,
normal step) and kept by gates on the device, a step is bound by memory or by computing, the
threshold is a share of the SMs that all normal steps beside the critical one have together, and
nothing is outstanding but the steps that passed their gates. A step of unknown cost, a captured
one, goes beside nothing. Kernels stay as they are (level 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.leftover import MEMORY_BOUND, TimedStep
from miriam.coordinator.plan import CLOSED, ORDERED, Grant, Level, Plan, StepPlan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix
from miriam.kernels import GpuSpec, resident_blocks

GATED = StepPlan(Level.GATE, Level.GATE)


@dataclass(frozen=True, slots=True)
class Orion:
    """Whole normal kernels on at most ``share`` of the SMs beside a critical kernel."""

    name: str = "orion"
    share: float = 0.5

    def plan(self, mix: Mix) -> Plan:
        """A gate before every normal step, open beside critical steps that it suits."""
        tasks = tuple(
            TaskPlan(
                mix.stream_priority(i),
                (ORDERED if task.critical else GATED,) * len(task.program.steps),
            )
            for i, task in enumerate(mix.tasks)
        )
        timed = [
            tuple(TimedStep(*pair) for pair in zip(task.program.steps, step_ns, strict=True))
            for task, step_ns in zip(mix.tasks, mix.step_ns, strict=True)
        ]
        grants = {
            (c, n): tuple(
                tuple(self._grant(mix.gpu, current, step) for step in timed[n])
                for current in timed[c]
            )
            for c in mix.critical
            for n in mix.normal
        }
        return Plan(tasks, grants)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)

    def _grant(self, gpu: GpuSpec, critical: TimedStep, normal: TimedStep) -> Grant:
        if not (critical.costed and normal.costed):
            return CLOSED
        if _by_memory(gpu, critical) == _by_memory(gpu, normal):
            return CLOSED
        kernel = normal.step.kernel
        per_sm = resident_blocks(kernel, kernel.original, gpu.limits)
        return Grant(int(self.share * gpu.sms) * per_sm)


def _by_memory(gpu: GpuSpec, timed: TimedStep) -> bool:
    moved_bytes = timed.step.cost.dram_bytes * timed.step.kernel.blocks
    return moved_bytes > MEMORY_BOUND * gpu.dram_gbps * timed.alone_ns


POLICY = Orion()
