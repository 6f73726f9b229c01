"""Grants within a budget: which of a unit's grants to give beside which segments.

A knapsack along a chain. What a grant costs and brings was measured beside its segment alone. But
blocks that are told to leave need time for it, in which they cost the next segment; so a grant that
a smaller one follows ends early, and counts for the part of its segment before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator.corun import CoRun
from miriam.coordinator.plan import CLOSED, Grant
from miriam.coordinator.task import Steps

PARTS = 256
"""A budget is spent in so many parts; a cost takes whole ones."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A segment as a unit sees it.

    ``alone_ns``: its time alone. ``early``: the share of it in which the unit may run if it has to
    be gone when the segment ends.
    """

    segment: Steps
    alone_ns: int
    early: float


@dataclass(frozen=True, slots=True)
class _Option:
    """A grant beside a stretch: what it costs the critical request, and brings the normal one."""

    grant: Grant
    cost_ns: float
    gain_ns: float


_HELD = _Option(CLOSED, 0.0, 0.0)


def within(
    coruns: Iterable[CoRun], stretches: Sequence[Stretch], budget_ns: float
) -> tuple[Grant, ...]:
    """The grants of one unit, by stretch, that bring most and cost at most ``budget_ns``.

    CLOSED where the unit is held. A grant that is larger than the next one is to end early.
    """
    measured = list(coruns)
    chain = _Chain([_options(stretch, measured) for stretch in stretches], stretches, budget_ns)
    return tuple(option.grant for option in chain.best())


def _options(stretch: Stretch, coruns: Iterable[CoRun]) -> list[_Option]:
    found = [_HELD]
    for corun in coruns:
        if corun.trial.critical == stretch.segment:
            cost_ns = max(0.0, corun.slowdown - 1) * stretch.alone_ns
            # As long as the segment lasts then.
            gain_ns = corun.progress * (stretch.alone_ns + cost_ns)
            found.append(_Option(corun.trial.grant, cost_ns, gain_ns))
    return found


class _Chain:
    """Chooses one option per stretch, from the last stretch backwards.

    Arrays have an entry per number of parts of the budget that are left.
    """

    def __init__(
        self, options: Sequence[Sequence[_Option]], stretches: Sequence[Stretch], budget_ns: float
    ) -> None:
        self._options, self._stretches, self._budget_ns = options, stretches, budget_ns

    def best(self) -> list[_Option]:
        """The options with the greatest gain together."""
        value = [np.zeros(PARTS + 1)]
        after: Sequence[_Option] = [_Option(Grant(0), 0.0, 0.0)]
        ways: list[list[NDArray[np.intp]]] = []
        for place in range(len(self._options) - 1, -1, -1):
            tables = [
                np.array([self._spent(place, o, f, v) for f, v in zip(after, value, strict=True)])
                for o in self._options[place]
            ]
            value = [table.max(axis=0) for table in tables]
            ways.insert(0, [table.argmax(axis=0) for table in tables])
            after = self._options[place]
        return self._walk(int(np.argmax([v[PARTS] for v in value])), ways)

    def _walk(self, chosen: int, ways: Sequence[Sequence[NDArray[np.intp]]]) -> list[_Option]:
        found, left = [], PARTS
        for place, options in enumerate(self._options):
            option = options[chosen]
            found.append(option)
            chosen = int(ways[place][chosen][left])
            if place + 1 < len(self._options):
                left -= self._parts(place, option, self._options[place + 1][chosen])
        return found

    def _share(self, place: int, option: _Option, following: _Option) -> float:
        last = place + 1 == len(self._options)
        leaves = not last and following.grant.blocks < option.grant.blocks
        return self._stretches[place].early if leaves else 1.0

    def _parts(self, place: int, option: _Option, following: _Option) -> int:
        """Parts of the budget that ``option`` takes; more than there are where it does not fit."""
        cost_ns = option.cost_ns * self._share(place, option, following)
        if cost_ns <= 0:
            return 0
        return ceil(cost_ns / self._budget_ns * PARTS) if cost_ns <= self._budget_ns else PARTS + 1

    def _spent(
        self, place: int, option: _Option, following: _Option, value: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The gain of ``option`` before ``following``, whose ``value`` is that of what is left."""
        gains = np.full(PARTS + 1, -np.inf)
        taken = self._parts(place, option, following)
        if taken <= PARTS:
            gain_ns = option.gain_ns * self._share(place, option, following)
            gains[taken:] = value[: PARTS + 1 - taken] + gain_ns
        return gains
