"""Co-running, measured: what normal work beside a stretch of a critical request costs and brings.

A policy that plans by measurement says what it wants to know, as trials; a device measures them
(`Measuring`), and `Mix.coruns` has the results. A critical request is cut into *segments*, since
a control write takes some microseconds to arrive and many steps are shorter than that; a normal one
into *units*: a long step, or short steps behind one gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from miriam.coordinator.gates import YIELD_TARGET_NS, gate_levels
from miriam.coordinator.plan import Grant, Level
from miriam.coordinator.policy import Policy
from miriam.coordinator.task import Mix, Steps

SEGMENT_NS = 50_000
"""A segment lasts at least so long: five to ten times what a control write takes to arrive."""

MOST_SEGMENTS = 16
"""Of a critical request, so that measuring stays a matter of seconds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Normal steps again and again under ``grant``, beside critical steps again and again."""

    critical: Steps
    normal: Steps
    grant: Grant


@dataclass(frozen=True, slots=True)
class CoRun:
    """What a trial showed.

    ``slowdown``: the critical steps' time / their time alone. ``progress``: the normal steps' rate
    beside them / their rate alone.
    """

    trial: Trial
    slowdown: float
    progress: float


@runtime_checkable
class Measuring(Policy, Protocol):
    """A policy whose plan needs `Mix.coruns`."""

    def trials(self, mix: Mix, critical: int, normal: int) -> Sequence[Trial]:
        """What has to be measured of two tasks of ``mix``."""


def segments(step_ns: Sequence[int]) -> tuple[Steps, ...]:
    """The steps of a critical request, whose times alone are ``step_ns``, as segments."""
    least_ns = max(SEGMENT_NS, sum(step_ns) // MOST_SEGMENTS)
    found: list[Steps] = []
    first, since_ns = 0, 0
    for step, taken_ns in enumerate(step_ns):
        since_ns += taken_ns
        if since_ns >= least_ns:
            found.append((first, step + 1))
            first, since_ns = step + 1, 0
    if first < len(step_ns):
        begin = found.pop()[0] if found else 0
        found.append((begin, len(step_ns)))
    return tuple(found)


def units(step_ns: Sequence[int]) -> tuple[Steps, ...]:
    """The steps of a normal request as units: what one gate holds."""
    gates = [i for i, level in enumerate(gate_levels(step_ns)) if level == Level.GATE]
    return tuple(zip(gates, [*gates[1:], len(step_ns)], strict=True))


def is_long(step_ns: Sequence[int], unit: Steps) -> bool:
    """Whether ``unit`` is one step that is worth an elastic form."""
    first, stop = unit
    return stop - first == 1 and step_ns[first] >= YIELD_TARGET_NS


@dataclass(frozen=True, slots=True)
class _Choice:
    """A grant beside a segment: what it costs a critical request, and brings the normal steps."""

    segment: Steps
    grant: Grant
    cost_ns: float
    gain_ns: float


def within(
    coruns: Iterable[CoRun], alone_ns: Mapping[Steps, int], budget: float
) -> Mapping[Steps, Grant]:
    """The grants of one unit by segment that bring most for a cost within ``budget``.

    ``alone_ns``: of each segment; ``budget``: share of all of it. Greedy by what a further ns of
    cost brings. Where nothing fits a budget that is not 0, the cheapest that brings anything, so
    that the unit does not starve. Segments without a grant hold the unit.
    """
    left_ns = budget * sum(alone_ns.values())
    choices = [_choice(corun, alone_ns[corun.trial.critical]) for corun in coruns]
    useful = [choice for choice in choices if choice.gain_ns > 0]
    steps = [
        s for segment in alone_ns for s in _ascent([c for c in useful if c.segment == segment])
    ]
    steps.sort(key=lambda s: -s[0])
    taken: dict[Steps, _Choice] = {}
    closed: set[Steps] = set()
    for _, choice in steps:
        if choice.segment in closed:
            continue
        held = taken.get(choice.segment)
        more_ns = choice.cost_ns - (held.cost_ns if held else 0.0)
        if more_ns <= left_ns:
            taken[choice.segment] = choice
            left_ns -= more_ns
        else:
            # What comes next there costs still more.
            closed.add(choice.segment)
    if budget and not taken and useful:
        cheapest = min(useful, key=lambda c: (c.cost_ns, -c.gain_ns))
        taken[cheapest.segment] = cheapest
    return {segment: choice.grant for segment, choice in taken.items()}


def _choice(corun: CoRun, alone_ns: int) -> _Choice:
    cost_ns = max(0.0, corun.slowdown - 1) * alone_ns
    # As long as the segment lasts then.
    gain_ns = corun.progress * (alone_ns + cost_ns)
    return _Choice(corun.trial.critical, corun.trial.grant, cost_ns, gain_ns)


def _ascent(choices: Sequence[_Choice]) -> list[tuple[float, _Choice]]:
    """From nothing upwards, each with the gain per cost of going there from the one before."""
    found: list[tuple[float, _Choice]] = []
    cost_ns = gain_ns = 0.0
    left = list(choices)
    while left:
        left = [c for c in left if c.gain_ns > gain_ns]
        if not left:
            break
        rate, best = max(
            ((_rate(c.gain_ns - gain_ns, c.cost_ns - cost_ns), c) for c in left),
            key=lambda pair: (pair[0], pair[1].gain_ns),
        )
        found.append((rate, best))
        cost_ns, gain_ns = max(cost_ns, best.cost_ns), best.gain_ns
    return found


def _rate(gain_ns: float, cost_ns: float) -> float:
    return gain_ns / cost_ns if cost_ns > 0 else float("inf")
