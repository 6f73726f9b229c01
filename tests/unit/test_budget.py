"""Offers and what is taken of them within a budget, against brute force on small instances."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miriam.coordinator import UNLIMITED, Grant
from miriam.coordinator.budget import HELD, PARTS, Offer, dear, offers, within
from miriam.coordinator.corun import CoRun, Trial

SEGMENT, FIRST, SECOND = (0, 1), (0, 2), (2, 3)
HALF = Grant(2, 256, ahead=True)


def corun(unit: tuple[int, int], grant: Grant, slowdown: float, progress: float) -> CoRun:
    return CoRun(Trial(SEGMENT, unit, grant), slowdown, progress)


def opened(cost_ns: float, gain_ns: float) -> Offer:
    return Offer({FIRST: UNLIMITED}, cost_ns, gain_ns)


def test_an_offer_costs_and_brings_what_its_units_do_in_turn() -> None:
    """100 us at half speed and 50 us at full speed take 200 + 50 us, in which the critical segment,
    1.25 and 2 times as slow, comes 160 + 25 us far: 185 us of 250 us, and 150 us of work."""
    coruns = [corun(FIRST, UNLIMITED, 1.25, 0.5), corun(SECOND, HALF, 2.0, 1.0)]
    held, offer = offers(coruns, {FIRST: 100_000, SECOND: 50_000}, 74_000)
    assert held is HELD
    assert offer.grants == {FIRST: UNLIMITED, SECOND: HALF}
    assert offer.cost_ns == pytest.approx(26_000)
    assert offer.gain_ns == pytest.approx(60_000)


def test_a_unit_that_comes_no_further_holds_all() -> None:
    coruns = [corun(FIRST, UNLIMITED, 1.0, 1.0), corun(SECOND, UNLIMITED, 1.0, 0.0)]
    assert offers(coruns, {FIRST: 1, SECOND: 1}, 50_000) == (HELD,)
    assert offers(coruns[:1], {FIRST: 1, SECOND: 1}, 50_000) == (HELD,)
    assert offers([], {FIRST: 1}, 50_000) == (HELD,)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.001, 1.0), st.floats(0.001, 1.0))
def test_what_slows_nothing_down_costs_nothing(a: int, b: int, one: float, other: float) -> None:
    coruns = [corun(FIRST, UNLIMITED, 0.99, one), corun(SECOND, UNLIMITED, 1.0, other)]
    (_, offer) = offers(coruns, {FIRST: a, SECOND: b}, 50_001)
    assert offer.cost_ns == 0


def test_dear_are_few_units_that_cost_more_than_all_others() -> None:
    third = (3, 4)
    work_ns = {FIRST: 40_000, SECOND: 20_000, third: 40_000}
    cheap = [corun(unit, UNLIMITED, 1.1, 1.0) for unit in (FIRST, third)]
    assert dear([*cheap, corun(SECOND, UNLIMITED, 1.9, 0.9)], work_ns) == {SECOND}
    # Not where another grant makes it cheap, nor where all cost the same, nor most of the work.
    spared = [corun(SECOND, UNLIMITED, 1.9, 0.9), corun(SECOND, HALF, 1.02, 0.2)]
    assert dear([*cheap, *spared], work_ns) != {SECOND}
    assert dear([*cheap, corun(SECOND, UNLIMITED, 1.1, 1.0)], work_ns) == frozenset()
    assert dear([*cheap, corun(SECOND, UNLIMITED, 1.9, 0.9)], {**work_ns, SECOND: 90_000}) == set()
    assert dear([], work_ns) == frozenset()


def test_of_grants_that_cost_nothing_the_fastest_is_offered() -> None:
    """Also where a greedier one is the better bargain at every price above nothing."""
    free = [corun(FIRST, UNLIMITED, 1.0, 0.5), corun(FIRST, HALF, 0.98, 0.6)]
    greedy = corun(FIRST, Grant(4, 256, ahead=True), 1.001, 0.9)
    found = offers([*free, greedy], {FIRST: 100_000}, 50_000)
    assert [offer.grants.get(FIRST) for offer in found] == [None, HALF, greedy.trial.grant]


SOME = (2, 4)


def test_an_offer_confines_to_one_set_of_sms_all_that_can_be() -> None:
    """A device has one set: where a unit was tried on it, what it does elsewhere does not count."""
    confined = Grant(UNLIMITED.blocks, sms=SOME)
    anywhere = [corun(FIRST, UNLIMITED, 1.0, 0.5), corun(SECOND, UNLIMITED, 1.5, 0.9)]
    works, stops = (corun(SECOND, confined, 1.0, progress) for progress in (0.3, 0.0))
    units_ns = {FIRST: 10_000, SECOND: 40_000}
    both = {FIRST: UNLIMITED, SECOND: UNLIMITED}
    _, *found = offers([*anywhere, works], units_ns, 50_000)
    assert [offer.grants for offer in found] == [both, {FIRST: UNLIMITED, SECOND: confined}]
    _, *found = offers([*anywhere, stops], units_ns, 50_000)
    assert [offer.grants for offer in found] == [both]


COSTS = st.floats(1.0, 4.0)
FLOWS = st.floats(0.01, 1.0)


@given(st.lists(st.tuples(st.booleans(), COSTS, FLOWS), min_size=1, max_size=8))
def test_a_higher_price_never_chooses_a_slower_flow(shown: list[tuple[bool, float, float]]) -> None:
    coruns = [
        corun(FIRST if first else SECOND, Grant(i + 1), slowdown, progress)
        for i, (first, slowdown, progress) in enumerate(shown)
    ]
    units_ns = {corun.trial.normal: 10_000 for corun in coruns}
    flows = [offer.gain_ns / (50_000 + offer.cost_ns) for offer in offers(coruns, units_ns, 50_000)]
    assert all(one <= other * (1 + 1e-9) for one, other in pairwise(flows))


OPENED = st.builds(opened, st.just(0.0) | st.floats(0.1, 1e4), st.floats(0.0, 1e5))
CHOICES = st.lists(
    st.lists(OPENED, max_size=2).map(lambda found: (HELD, *found)), min_size=1, max_size=4
)
EARLY = st.lists(st.just(0.0) | st.floats(0.05, 1.0), min_size=4, max_size=4)


def totals(chosen: Sequence[Offer], early: Sequence[float]) -> tuple[float, float] | None:
    """Cost and gain; None where something is opened that has to be gone before it could begin."""
    cost_ns, gain_ns = 0.0, 0.0
    for offer, following, share in zip(chosen, [*chosen[1:], None], early, strict=False):
        if offer is HELD:
            continue
        counted = share if following is HELD else 1.0
        if not counted:
            return None
        cost_ns += counted * offer.cost_ns
        gain_ns += counted * offer.gain_ns
    return cost_ns, gain_ns


def best_ns(choices: Sequence[Sequence[Offer]], early: Sequence[float], budget_ns: float) -> float:
    found = [totals(chosen, early) for chosen in product(*choices)]
    return max(total[1] for total in found if total is not None and total[0] <= budget_ns)


@given(CHOICES, EARLY, st.just(0.0) | st.floats(1.0, 2e4))
def test_what_is_taken_brings_most_for_the_budget(
    choices: list[tuple[Offer, ...]], early: list[float], budget_ns: float
) -> None:
    chosen = within(choices, early, budget_ns)
    assert all(offer in known for offer, known in zip(chosen, choices, strict=True))
    found = totals(chosen, early)
    assert found is not None
    cost_ns, gain_ns = found
    assert cost_ns <= budget_ns * (1 + 1e-9)
    # A cost takes whole parts: up to one more than its own per segment.
    surely_ns = best_ns(choices, early, budget_ns * (1 - len(choices) / PARTS))
    assert gain_ns >= surely_ns * (1 - 1e-9)


@given(CHOICES, EARLY, st.floats(1.0, 2e4), st.floats(1.0, 3.0))
def test_a_larger_budget_never_brings_less(
    choices: list[tuple[Offer, ...]], early: list[float], budget_ns: float, times: float
) -> None:
    less, more = (totals(within(choices, early, b), early) for b in (budget_ns, budget_ns * times))
    assert less is not None and more is not None
    assert more[1] >= less[1] * (1 - 1e-9)


def test_without_a_budget_only_what_costs_nothing_is_taken() -> None:
    free, dear = opened(0.0, 10.0), opened(1e-3, 1_000.0)
    assert within([(HELD, free, dear)] * 3, [0.5] * 3, 0.0) == (free,) * 3


def test_an_offer_pays_for_its_early_share_only() -> None:
    offer = opened(10.0, 100.0)
    assert within([(HELD, offer), (HELD,)], [0.5, 0.5], 5.0) == (offer, HELD)
    assert within([(HELD, offer), (HELD,)], [0.6, 0.5], 5.0) == (HELD, HELD)


def test_an_offer_that_could_not_even_begin_does_not_let_the_one_before_go_on() -> None:
    """Else the blocks of the first segment would be told to leave in the second one only."""
    first, second = opened(10.0, 100.0), opened(10.0, 100.0)
    choices = [(HELD, first), (HELD, second), (HELD,)]
    assert within(choices, [0.5, 0.0, 0.5], 10.0) == (first, HELD, HELD)


def test_what_one_segment_spends_is_gone_for_all_later_ones() -> None:
    """Also beyond a segment where all is held."""
    most, less = opened(10.0, 300.0), opened(10.0, 100.0)
    choices = [(HELD, most), (HELD,), (HELD, less)]
    assert within(choices, [1.0] * 3, 10.0) == (most, HELD, HELD)


def test_a_part_of_a_budget_that_is_begun_is_spent() -> None:
    half = opened(PARTS / 2 + 0.9, 1.0)
    assert within([(HELD, half)] * 2, [1.0] * 2, PARTS).count(half) == 1


def test_a_unit_that_was_tried_on_the_set_of_sms_is_not_let_out_of_it() -> None:
    """Where others are confined; there it does what was seen there."""
    confined = Grant(UNLIMITED.blocks, sms=SOME)
    coruns = [
        corun(FIRST, UNLIMITED, 3.0, 0.9),
        corun(FIRST, confined, 1.0, 0.9),
        corun(SECOND, UNLIMITED, 1.0, 0.9),
        corun(SECOND, confined, 1.5, 0.3),
    ]
    found = offers(coruns, {FIRST: 10_000, SECOND: 40_000}, 50_000)
    sets = [{grant.sms for grant in offer.grants.values()} for offer in found]
    assert sets == [set(), {None}, {SOME}]


def test_dear_are_the_worst_by_cost_per_work_beside_the_average_segment() -> None:
    """Of 24, 20 and 0 us the second costs most for its work, and less than half of all."""
    third = (3, 4)
    coruns = [
        corun(FIRST, UNLIMITED, 1.3, 0.5),
        corun(SECOND, UNLIMITED, 3.0, 1.0),
        corun(third, UNLIMITED, 1.0, 1.0),
        CoRun(Trial((1, 2), SECOND, UNLIMITED), 3.0, 1.0),
    ]
    units_ns = {FIRST: 40_000, SECOND: 10_000, third: 50_000}
    assert dear(coruns, units_ns) == {FIRST, SECOND}
