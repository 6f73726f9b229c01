"""The control words: which critical requests are announced, and where each one stands.

State is counted per request: a request is in here from its announcement to its end, so a second
one during the first, and several critical tasks, just work.
"""

from __future__ import annotations

from miriam.coordinator import UNLIMITED, Grant, Plan


class Words:
    """What a gate or a claim reads, and the grant that follows from it."""

    def __init__(self, plan: Plan, tasks: int) -> None:
        self._grants = plan.grants
        self._watched = {critical for critical, _ in plan.grants}
        self._changes = {c: _changing_steps(plan, c, tasks) for c in self._watched}
        self._steps: dict[tuple[int, int], int] = {}

    def watched(self, task: int) -> bool:
        """Whether any grant depends on the requests of ``task``."""
        return task in self._watched

    def changes_at(self, task: int, step: int) -> bool:
        """Whether the critical graph has to write when ``step`` begins."""
        return step in self._changes.get(task, ())

    def set(self, task: int, request: int, step: int) -> None:
        """The critical ``request`` is announced (step 0) or has come to ``step``."""
        self._steps[task, request] = step

    def clear(self, task: int, request: int) -> None:
        """The critical ``request`` has finished."""
        self._steps.pop((task, request), None)

    def grant(self, task: int, step: int) -> Grant:
        """What ``step`` of the normal ``task`` may hold now: the smallest grant that applies."""
        if not self._steps:
            return UNLIMITED
        smallest = UNLIMITED
        for (critical, _), critical_step in self._steps.items():
            table = self._grants.get((critical, task))
            if table is not None:
                grant = table[critical_step][step]
                if smallest is UNLIMITED or grant.blocks < smallest.blocks:
                    smallest = grant
        return smallest


def _changing_steps(plan: Plan, critical: int, tasks: int) -> frozenset[int]:
    tables = [plan.grants[critical, n] for n in range(tasks) if (critical, n) in plan.grants]
    steps = range(1, len(tables[0]))
    return frozenset(s for s in steps if any(t[s] != t[s - 1] for t in tables))
