"""Where gates go: as few as keep the time between two of them under the yield target."""

from __future__ import annotations

from collections.abc import Sequence

from miriam.coordinator.plan import CLOSED, GrantTable, Level
from miriam.coordinator.task import Mix
from miriam.errors import UsageError

YIELD_TARGET_NS = 20_000
"""A step this long is worth an elastic form; shorter ones share gates (measured: a gate costs
1.2 us, a yield inside a step about one block; docs/results/device.md)."""


def gate_levels(step_ns: Sequence[int], target_ns: int = YIELD_TARGET_NS) -> tuple[Level, ...]:
    """GATE for the first step of each group whose summed time stays under ``target_ns``."""
    levels: list[Level] = []
    since_ns = 0
    for duration_ns in step_ns:
        if not levels or since_ns + duration_ns > target_ns:
            levels.append(Level.GATE)
            since_ns = 0
        else:
            levels.append(Level.ORDER)
        since_ns += duration_ns
    return tuple(levels)


def yield_target_ns(mix: Mix, share: float) -> int:
    """How long normal work may take to leave: `YIELD_TARGET_NS`, or more beside long requests.

    ``share``: of the time alone of the shortest critical request.
    """
    shortest_ns = min((sum(mix.step_ns[task]) for task in mix.critical), default=0)
    return max(YIELD_TARGET_NS, round(share * shortest_ns))


def check_yield_share(policy: str, share: float) -> None:
    """UsageError unless ``share`` is one."""
    if not 0 <= share <= 1:
        field = f"policy {policy.partition(':')[0]} yield_share"
        raise UsageError(field, "a share, 0 to 1", share)


def closed_tables(mix: Mix) -> dict[tuple[int, int], GrantTable]:
    """Grants that hold every normal step beside every critical one."""
    return {
        (c, n): ((CLOSED,) * len(mix.tasks[n].program.steps),) * len(mix.tasks[c].program.steps)
        for c in mix.critical
        for n in mix.normal
    }
