"""Grants within a budget: beside which segments of a critical request normal work goes on, and how.

Normal work passes its units one after the other, so a unit that is held holds all that come after
it. Beside a segment therefore either all units may go on, each under the grant that it does best
with (an *offer*), or none. What an offer costs and brings was measured beside its segment alone;
but blocks that are told to leave need time for it, in which they cost the next segment. So an offer
that no other one follows ends early, and counts for the part of its segment before that. Which
offers to take is a knapsack along a chain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator.corun import CoRun
from miriam.coordinator.plan import Grant
from miriam.coordinator.split import Range
from miriam.coordinator.task import Steps

PARTS = 256
"""A budget is spent in so many parts; a cost takes whole ones."""

PRICES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
"""What a ns of normal time counts in ns of critical time, for offers from gentle to greedy."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What every unit may hold beside a segment, by unit; nothing at all where it holds them.

    ``cost_ns``: by how much the segment lasts longer. ``gain_ns``: the normal work done meanwhile,
    in ns of its time alone.
    """

    grants: Mapping[Steps, Grant]
    cost_ns: float
    gain_ns: float


HELD = Offer({}, 0.0, 0.0)


def offers(
    coruns: Sequence[CoRun], units_ns: Mapping[Steps, int], segment_ns: int
) -> tuple[Offer, ...]:
    """The offers beside one segment, `HELD` first.

    ``coruns``: of all units (``units_ns``: their times alone) beside that segment, which takes
    ``segment_ns`` alone. In one offer all blocks that are confined are so to the same SMs. Where a
    unit came no further under any grant, there is none but `HELD`.
    """
    found = [HELD]
    under: dict[tuple[Steps, Range | None], list[CoRun]] = defaultdict(list)
    for corun in coruns:
        under[corun.trial.normal, corun.trial.grant.sms].append(corun)
    for sms in sorted({sms for _, sms in under}, key=lambda sms: sms or ()):
        by_unit = {unit: _while_confined(under, unit, sms) for unit in units_ns}
        if all(by_unit.values()):
            for price in PRICES:
                chosen = {unit: min(known, key=_at(price)) for unit, known in by_unit.items()}
                found.append(_offer(chosen, units_ns, segment_ns))
    return tuple(offer for place, offer in enumerate(found) if offer not in found[:place])


def dear(coruns: Sequence[CoRun], units_ns: Mapping[Steps, int]) -> frozenset[Steps]:
    """The few units that make up most of what it costs to let all go on: better held, perhaps.

    The worst ones by cost per work, until the others cost less than half; none where they are more
    than half of the work. Held, they hold those behind them too, until the next pause.
    """
    beside: dict[Steps, list[CoRun]] = defaultdict(list)
    for corun in coruns:
        beside[corun.trial.normal].append(corun)
    costs_ns = {unit: ns * _cheapest(beside[unit]) for unit, ns in units_ns.items()}
    worst = sorted(units_ns, key=lambda unit: -costs_ns[unit] / units_ns[unit])
    left_ns, found = sum(costs_ns.values()) / 2, []
    for unit in worst:
        if left_ns <= 0:
            break
        found.append(unit)
        left_ns -= costs_ns[unit]
    work_ns = sum(units_ns[unit] for unit in found)
    return frozenset(found) if 2 * work_ns <= sum(units_ns.values()) else frozenset()


def _cheapest(coruns: Sequence[CoRun]) -> float:
    """Critical time lost per work of a unit, over all segments, each under its best grant."""
    best: dict[Steps, float] = {}
    for corun in coruns:
        if corun.progress > 0:
            lost = _lost(corun) / corun.progress
            best[corun.trial.critical] = min(lost, best.get(corun.trial.critical, lost))
    return sum(best.values()) / max(1, len(best))


def _while_confined(
    under: Mapping[tuple[Steps, Range | None], Sequence[CoRun]], unit: Steps, sms: Range | None
) -> list[CoRun]:
    """What ``unit`` may do while elastic blocks keep to ``sms``: a device has one such set."""
    known = under.get((unit, sms)) or under.get((unit, None), ())
    return [corun for corun in known if corun.progress > 0]


def _at(price: float) -> Callable[[CoRun], tuple[float, float]]:
    """What a ns of a unit's work costs: critical time lost, and its own time at ``price``.

    Where that is the same, the faster one is better.
    """
    return lambda corun: ((_lost(corun) + price) / corun.progress, -corun.progress)


def _lost(corun: CoRun) -> float:
    return max(0.0, corun.slowdown - 1)


def _offer(chosen: Mapping[Steps, CoRun], units_ns: Mapping[Steps, int], segment_ns: int) -> Offer:
    # Of a whole normal request: how long it takes, and how far the critical one comes meanwhile.
    takes_ns = {unit: units_ns[unit] / corun.progress for unit, corun in chosen.items()}
    total_ns = sum(takes_ns.values())
    passed_ns = sum(takes_ns[unit] / (1 + _lost(corun)) for unit, corun in chosen.items())
    # In this order, what loses nothing costs 0 exactly, and fits a budget of 0.
    lasts_ns = segment_ns * (total_ns / passed_ns)
    return Offer(
        grants={unit: corun.trial.grant for unit, corun in chosen.items()},
        cost_ns=lasts_ns - segment_ns,
        gain_ns=lasts_ns * sum(units_ns.values()) / total_ns,
    )


def within(
    choices: Sequence[Sequence[Offer]], early: Sequence[float], budget_ns: float
) -> tuple[Offer, ...]:
    """One of ``choices`` per segment: those that bring most for at most ``budget_ns`` in all.

    ``choices``: of each segment, `HELD` first. ``early``: for each segment the share of it that is
    left for an offer which `HELD` follows.
    """
    return _Chain(choices, early, budget_ns).best()


class _Chain:
    """Chooses from the last segment backwards.

    Arrays have an entry per number of parts of the budget that are left.
    """

    def __init__(
        self, choices: Sequence[Sequence[Offer]], early: Sequence[float], budget_ns: float
    ) -> None:
        self._choices, self._early, self._budget_ns = choices, early, budget_ns

    def best(self) -> tuple[Offer, ...]:
        """The offers with the greatest gain together."""
        value = [np.zeros(PARTS + 1)]
        ways: list[list[NDArray[np.intp]]] = []
        for place in range(len(self._choices) - 1, -1, -1):
            after = self._after(place)
            tables = [
                np.array([self._spent(place, o, f, v) for f, v in zip(after, value, strict=True)])
                for o in self._choices[place]
            ]
            value = [table.max(axis=0) for table in tables]
            ways.insert(0, [table.argmax(axis=0) for table in tables])
        return self._walk(int(np.argmax([v[PARTS] for v in value])), ways)

    def _after(self, place: int) -> Sequence[Offer | None]:
        """What may follow; None after the last segment, where nothing has to be gone."""
        last = place + 1 == len(self._choices)
        return (None,) if last else self._choices[place + 1]

    def _walk(self, chosen: int, ways: Sequence[Sequence[NDArray[np.intp]]]) -> tuple[Offer, ...]:
        found, left = [], PARTS
        for place, choices in enumerate(self._choices):
            offer = choices[chosen]
            found.append(offer)
            chosen = int(ways[place][chosen][left])
            left -= self._parts(place, offer, self._after(place)[chosen])
        return tuple(found)

    def _share(self, place: int, following: Offer | None) -> float:
        return self._early[place] if following is HELD else 1.0

    def _parts(self, place: int, offer: Offer, following: Offer | None) -> int:
        """Parts of the budget that ``offer`` takes; more than there are where it does not fit.

        Nor does one that ends before it begins: what came before would leave no sooner for it.
        """
        share = self._share(place, following)
        if share == 0 and offer is not HELD:
            return PARTS + 1
        cost_ns = offer.cost_ns * share
        if cost_ns <= 0:
            return 0
        return ceil(cost_ns / self._budget_ns * PARTS) if cost_ns <= self._budget_ns else PARTS + 1

    def _spent(
        self, place: int, offer: Offer, following: Offer | None, value: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The gain of ``offer`` before ``following``, whose ``value`` is that of what is left."""
        gains = np.full(PARTS + 1, -np.inf)
        taken = self._parts(place, offer, following)
        if taken <= PARTS:
            gain_ns = offer.gain_ns * self._share(place, following)
            gains[taken:] = value[: PARTS + 1 - taken] + gain_ns
        return gains
