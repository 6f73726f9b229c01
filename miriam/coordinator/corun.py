"""Co-running, measured: what normal work beside a stretch of a critical request costs and brings.

A policy that plans by measurement says what it wants to know, as trials; a device measures them
(`Measuring`), and `Mix.coruns` has the results. From these the policy makes candidates, plans that
open more and more; the device tries each with all tasks, and `Mix.candidates` has what it saw.

A critical request is cut into *segments*, since a control write takes some microseconds to arrive
and many steps are shorter than that; a normal one into *units*: a long step, or short steps behind
one gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from miriam.coordinator.gates import YIELD_TARGET_NS, gate_levels
from miriam.coordinator.plan import Grant, Level, Plan
from miriam.coordinator.policy import Policy
from miriam.coordinator.task import Mix, Steps

SEGMENT_NS = 50_000
"""A segment lasts at least so long: four times and more what a control write takes to arrive
(docs/results/device.md, p50)."""

MOST_SEGMENTS = 16
"""Of a critical request, so that measuring stays a matter of seconds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Normal steps again and again under ``grant``, beside those steps of a critical request."""

    critical: Steps
    normal: Steps
    grant: Grant


@dataclass(frozen=True, slots=True)
class CoRun:
    """What a trial showed.

    ``slowdown``: the critical steps' time / their time after the normal task, which may have
    emptied the caches. ``progress``: the normal steps' rate beside them / their rate alone.
    """

    trial: Trial
    slowdown: float
    progress: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """What trying a plan with all tasks showed.

    ``slowdown``: the 99th percentile (simulated: the 95th) of a critical request's service / the
    same under the first candidate; in closed loops or with pauses between critical requests, and of
    several critical tasks, whichever is largest. ``gain``: the normal work done beside closed loops
    of critical requests, in ns of its time alone per ns; ``paused_gain``: the same with pauses.
    """

    plan: Plan
    slowdown: float
    gain: float
    paused_gain: float = 1.0


@runtime_checkable
class Measuring(Policy, Protocol):
    """A policy whose plan is one of `Mix.candidates`, which it makes of `Mix.coruns`."""

    def trials(self, mix: Mix, critical: int, normal: int) -> Sequence[Trial]:
        """What has to be measured of two tasks of ``mix``."""

    def candidates(self, mix: Mix) -> Sequence[Plan]:
        """The plans that a device tries, as far as it may; the first one holds all normal work."""


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


def units(step_ns: Sequence[int], target_ns: int = YIELD_TARGET_NS) -> tuple[Steps, ...]:
    """The steps of a normal request as units: what one gate holds, up to ``target_ns`` together."""
    gates = [i for i, level in enumerate(gate_levels(step_ns, target_ns)) if level == Level.GATE]
    return tuple(zip(gates, [*gates[1:], len(step_ns)], strict=True))


def is_long(step_ns: Sequence[int], unit: Steps) -> bool:
    """Whether ``unit`` is one step that is worth an elastic form."""
    first, stop = unit
    return stop - first == 1 and step_ns[first] >= YIELD_TARGET_NS
