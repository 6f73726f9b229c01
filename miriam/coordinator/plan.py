"""Plans: what every normal step may hold beside every critical step, decided beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class Level(IntEnum):
    """How much control the coordinator takes of a step (docs/architecture.md, levels)."""

    ORDER = 0
    GATE = 1
    YIELD = 2
    GRANT = 3


@dataclass(frozen=True, slots=True)
class Grant:
    """What the normal steps may hold at one moment.

    ``blocks``: resident physical blocks of all normal steps together; 0 holds the step.
    ``threads``: threads per physical block, 0 for the original's.
    ``sms``: the half-open range of SMs that they may use, None for all. ``ahead``: its blocks are
    placed before the critical blocks that wait; behind a critical kernel with more blocks than
    the GPU holds, none would be placed until that has placed its last.
    """

    blocks: int
    threads: int = 0
    sms: tuple[int, int] | None = None
    ahead: bool = False


CLOSED = Grant(blocks=0)
UNLIMITED = Grant(blocks=2**31 - 1)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """How a step runs: at ``level`` beside critical work, at ``alone`` when there is none.

    At ORDER and GATE it is the original kernel, at YIELD and GRANT the elastic one.
    """

    level: Level
    alone: Level


ORDERED = StepPlan(Level.ORDER, Level.ORDER)


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """How one task is issued: its streams' priority, its steps, and its SMs (None for all).

    ``borders``: the steps before which its requests wait until every running request is at a
    border or has finished (barriers between streams).
    """

    stream_priority: int
    steps: tuple[StepPlan, ...]
    sms: tuple[int, int] | None = None
    borders: frozenset[int] = frozenset()


GrantTable = tuple[tuple[Grant, ...], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan, small enough to lie in device memory and be swapped whole.

    ``grants[critical task, normal task][critical step][normal step]`` holds while that critical
    step is the current one; without an entry, or with no critical request announced, a normal
    step is UNLIMITED. Where several critical requests run, the smallest grant counts.
    ``hosted``: the host looks on and launches the normal steps one by one, a shard at a time;
    else they lie on the device beforehand and ask for themselves.
    """

    tasks: tuple[TaskPlan, ...]
    grants: Mapping[tuple[int, int], GrantTable] = field(default_factory=dict)
    hosted: bool = False
