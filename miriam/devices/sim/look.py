"""How one launch stands on the simulated GPU, and who uses what it could use; for observers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from miriam.devices.observe import Look
from miriam.devices.sim.residents import Cohort, Group, Launch
from miriam.kernels import SmLimits

POLICY = -1
"""Stands for the SMs that the policy keeps from a launch."""


def look(
    number: int,
    groups: Sequence[Group],
    queue: Sequence[Launch],
    stretch: tuple[float, float],
    limits: SmLimits,
) -> Look:
    """The look of launch ``number``; ``stretch``: how far L2 and DRAM are over-asked."""
    mine = [c for g in groups for c in g.cohorts if c.launch.order[1] == number]
    waiting = [launch for launch in queue if launch.order[1] == number]
    launch = mine[0].launch if mine else waiting[0] if waiting else None
    if launch is None:
        return Look(0, 0.0, 0.0, {}, {})
    slowed: dict[str, float] = defaultdict(float)
    for cohort in mine:
        lost = cohort.blocks * (1 / launch.alone_ns - 1 / cohort.takes_ns)
        slowed[_binding(cohort, stretch)] += lost
    return Look(
        resident=sum(c.blocks for c in mine),
        rate=sum(c.blocks / c.takes_ns for c in mine),
        alone_ns=launch.alone_ns,
        slowed=slowed,
        by={
            "places": _places(launch, groups, queue, limits),
            "issue": _issue(number, groups),
            **_memory(number, groups),
        },
    )


def _binding(cohort: Cohort, stretch: tuple[float, float]) -> str:
    profile = cohort.launch.profile
    times = {
        "issue": profile.issue_ns * cohort.group.stretch,
        "l2": profile.l2_ns * stretch[0],
        "dram": profile.dram_ns * stretch[1],
    }
    return max(times, key=lambda cause: times[cause])


def _places(
    launch: Launch, groups: Sequence[Group], queue: Sequence[Launch], limits: SmLimits
) -> dict[int, float]:
    """The SMs that others fill; where they fill none, the launches that stand before this one."""
    held: dict[int, float] = defaultdict(float)
    for group in groups:
        if not group.zone & launch.zones:
            held[POLICY] += len(group.sms)
            continue
        for cohort in group.cohorts:
            if cohort.launch is not launch:
                held[cohort.launch.order[1]] += cohort.blocks * _room(cohort.launch, limits)
    if not held:
        held.update({other.order[1]: 1.0 for other in queue if other < launch})
    return held


def _room(launch: Launch, limits: SmLimits) -> float:
    """The share of an SM that one block takes, of whatever it takes most of."""
    return max(
        launch.threads / limits.threads,
        launch.registers / limits.registers,
        launch.shared_bytes / limits.shared_bytes,
        1 / limits.blocks,
    )


def _issue(number: int, groups: Sequence[Group]) -> dict[int, float]:
    used: dict[int, float] = defaultdict(float)
    for group in groups:
        here = sum(c.blocks for c in group.cohorts if c.launch.order[1] == number)
        for cohort in group.cohorts if here else ():
            other = cohort.launch.order[1]
            if other != number:
                per_ns = cohort.per_sm * cohort.launch.profile.issue_work / cohort.takes_ns
                used[other] += here * per_ns
    return used


def _memory(number: int, groups: Sequence[Group]) -> dict[str, dict[int, float]]:
    l2: dict[int, float] = defaultdict(float)
    dram: dict[int, float] = defaultdict(float)
    for group in groups:
        for cohort in group.cohorts:
            other, profile = cohort.launch.order[1], cohort.launch.profile
            if other != number:
                l2[other] += cohort.blocks * profile.l2_work / cohort.takes_ns
                dram[other] += cohort.blocks * profile.dram_work / cohort.takes_ns
    return {"l2": l2, "dram": dram}
