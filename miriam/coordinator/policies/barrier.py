"""Inter-stream barriers (IB): tasks run side by side, group of kernels by group of kernels.

Yu et al., "Automated Runtime-Aware Scheduling for Multi-Tenant DNN Inference on GPU", ICCAD 2021
(arXiv 2111.14255), a baseline of the paper: multi-stream with barriers that synchronise groups of
kernels between streams, so that no task runs far ahead and takes the other's room. There the
borders are found by a search that measures candidates on the GPU. Here the search is pure and
predicts from each step's time alone; the borders and what they do are the same.

All tasks get groups of about the same summed solo time (each task's own kernels balanced over its
groups); the time is searched. The objective, summed over (critical, normal) pairs and minimised,
is the slow-down of the critical request plus that of the normal one::

    stage    = max(critical group, normal group, GPU time of all groups in it) + BORDER_NS
    critical = (longest normal group + critical groups * mean stage) / critical time alone
    normal   = normal groups * mean stage / normal time alone

The first term of ``critical`` is the wait for the group under way when a request arrives: it asks
for small groups, as barriers and uneven groups ask for large ones. The GPU time of a kernel is its
time alone times the share of the GPU's places for blocks that it fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from miriam.coordinator.plan import ORDERED, Plan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix
from miriam.kernels import GpuSpec, Step, resident_blocks

BORDER_NS = 5_000
"""What a border costs its streams beside the wait: an event recorded, waited for, a launch."""

MOST_GROUPS = 64
"""The longest task is cut into 1 to this many groups."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Original kernels on prioritised streams, with borders."""

    name: str = "barrier"

    def plan(self, mix: Mix) -> Plan:
        """The borders with the smallest predicted slow-down; none where nothing co-runs."""
        starts = _search(mix) if mix.critical and mix.normal else [()] * len(mix.tasks)
        return Plan(
            tuple(
                TaskPlan(
                    mix.stream_priority(i),
                    (ORDERED,) * len(task.program.steps),
                    borders=frozenset(starts[i]),
                )
                for i, task in enumerate(mix.tasks)
            )
        )

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


def balanced(step_ns: Sequence[int], groups: int) -> tuple[int, ...]:
    """The first step of each of at most ``groups`` groups of about equal summed time.

    A border goes to the step that begins nearest to each equal share of the time.
    """
    begins = [0, *accumulate(step_ns)][:-1]
    total = sum(step_ns)
    shares = [total * k / groups for k in range(groups)]
    return tuple(
        sorted({min(range(len(begins)), key=lambda i: abs(begins[i] - s)) for s in shares})
    )


@dataclass(frozen=True, slots=True)
class _Stages:
    """A task cut into groups: their times alone, and the GPU times of all requests in flight."""

    alone_ns: tuple[int, ...]
    gpu_ns: tuple[float, ...]


def _search(mix: Mix) -> list[tuple[int, ...]]:
    longest = max(map(sum, mix.step_ns))
    candidates = [
        [balanced(step_ns, max(1, round(sum(step_ns) * n / longest))) for step_ns in mix.step_ns]
        for n in range(1, MOST_GROUPS + 1)
    ]
    return min(candidates, key=lambda starts: _slowdown(mix, starts))


def _slowdown(mix: Mix, starts: Sequence[tuple[int, ...]]) -> float:
    cut = [_stages(mix, i, task_starts) for i, task_starts in enumerate(starts)]
    return sum(_pair(cut[c], cut[n]) for c in mix.critical for n in mix.normal)


def _pair(critical: _Stages, normal: _Stages) -> float:
    groups = len(critical.alone_ns), len(normal.alone_ns)
    rounds = max(groups)
    stages = 0.0
    for i in range(rounds):
        c, n = i % groups[0], i % groups[1]
        gpu_ns = critical.gpu_ns[c] + normal.gpu_ns[n]
        stages += max(critical.alone_ns[c], normal.alone_ns[n], gpu_ns) + BORDER_NS
    mean = stages / rounds
    waited = max(normal.alone_ns) + groups[0] * mean
    return waited / sum(critical.alone_ns) + groups[1] * mean / sum(normal.alone_ns)


def _stages(mix: Mix, task: int, starts: tuple[int, ...]) -> _Stages:
    steps, step_ns = mix.tasks[task].program.steps, mix.step_ns[task]
    ranges = [slice(*ends) for ends in pairwise((*starts, len(steps)))]
    busy = [t * _filled(mix.gpu, s) for s, t in zip(steps, step_ns, strict=True)]
    in_flight = mix.tasks[task].in_flight
    return _Stages(
        tuple(sum(step_ns[r]) for r in ranges),
        tuple(in_flight * sum(busy[r]) for r in ranges),
    )


def _filled(gpu: GpuSpec, step: Step) -> float:
    """The share of the GPU's places for its blocks that a step fills at once."""
    kernel = step.kernel
    places = gpu.sms * resident_blocks(kernel, kernel.original, gpu.limits)
    return min(1.0, kernel.blocks / places)


POLICY = Barrier()
