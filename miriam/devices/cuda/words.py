"""The control words: a row per critical request in flight, and the rows that its graph writes.

A row says what every normal step may hold while that critical request stands where it stands::

    [SM set, 8 words][words of normal request 0: its steps in order][request 1: ...] ...

A step has a word for each of its forms: how many physical blocks may go on, 0 for none. A gate or
a claim reads the same word of all rows, and the smallest counts; the row of a request that does not
run lets everything go on. Rows are written by copies from page-locked memory of the host, where the
rows of the whole plan lie: neither needs a place on an SM. (A copy within the GPU does: it was
measured waiting for all blocks of the step that it should stop.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator import CLOSED, UNLIMITED, Grant, Level, Mix, Plan
from miriam.errors import MissingCapabilityError

SM_WORDS = 8
"""Words of a set of SMs: up to 256."""

OPEN = 0xFFFF_FFFF
"""Nothing limits a step; it is its original form's word only."""

CONFINED = OPEN - 1
"""Any number of blocks, on some SMs: not the word on which shrunken launches are made anew."""

Row = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class StepWords:
    """The words of one step of one normal request: the first one's index in a row.

    ``threads``: of each form, the original's first. ``elastic``: whether it can be stopped; else
    its one word opens its gate. ``limited``: whether it may be granted a part of its blocks,
    or of the SMs.
    """

    index: int
    threads: tuple[int, ...]
    elastic: bool
    limited: bool = False


class Layout:
    """Which words a row has for every one of ``plans``, which differ in their grants only."""

    def __init__(self, mix: Mix, plans: Sequence[Plan]) -> None:
        self._mix, self._plans = mix, plans
        self._words: dict[tuple[int, int, int], StepWords] = {}
        width = SM_WORDS
        for task in mix.normal:
            for request in range(mix.tasks[task].in_flight):
                for step in range(len(mix.tasks[task].program.steps)):
                    words = self._step(task, step, width)
                    if words is not None:
                        self._words[task, request, step] = words
                        width += len(words.threads)
        self.width = width
        self.requests = sum(mix.tasks[task].in_flight for task in mix.normal)

    def step(self, task: int, request: int, step: int) -> StepWords | None:
        """The words of a step, None where nothing is asked."""
        return self._words.get((task, request, step))

    def _step(self, task: int, step: int, index: int) -> StepWords | None:
        plan = self._plans[0].tasks[task].steps[step]
        if max(plan.level, plan.alone) < Level.GATE:
            return None
        work = self._mix.tasks[task].program.steps[step]
        kernel = work.kernel
        grants = {
            row[step]
            for plan_of in self._plans
            for (_, normal), table in plan_of.grants.items()
            if normal == task
            for row in table
        }
        part = any(0 < g.blocks < kernel.blocks for g in grants)
        # Short steps are worth an elastic form only where they may hold a part of their blocks.
        elastic = work.rigid is None and (
            plan.alone >= Level.YIELD or (plan.level >= Level.YIELD and part)
        )
        if not elastic:
            return StepWords(index, (kernel.threads,), False)
        fewer = {g.threads for g in grants if g.blocks and g.threads} - {kernel.threads}
        limited = part or any(g.blocks and g.sms for g in grants)
        return StepWords(index, (kernel.threads, *sorted(fewer, reverse=True)), True, limited)

    def idle(self) -> Row:
        """The row of a critical request that does not run."""
        return self._filled(None)

    def rows(
        self, plan: Plan, critical: int, sets: Mapping[tuple[int, int], Sequence[int]]
    ) -> list[Row]:
        """The row for each step of the task ``critical`` under ``plan``.

        ``sets``: the hardware's SM numbers of each range of SMs in the plan.
        """
        steps = range(len(self._mix.tasks[critical].program.steps))
        return [self._row(plan, critical, step, sets) for step in steps]

    def _row(
        self,
        plan: Plan,
        critical: int,
        step: int,
        sets: Mapping[tuple[int, int], Sequence[int]],
    ) -> Row:
        tables = {n: plan.grants.get((critical, n)) for n in self._mix.normal}
        current = {n: table[step] for n, table in tables.items() if table is not None}
        row = self._filled(current)
        ranges = {g.sms for grants in current.values() for g in grants if g.blocks and g.sms}
        if len(ranges) > 1:
            raise MissingCapabilityError(
                "device cuda",
                f"one set of SMs beside a critical step, the plan has {sorted(ranges)}",
                "use a policy that names one range of SMs per critical step",
            )
        for sms in ranges:
            row[:SM_WORDS] = sm_set(sets[sms])
            forms = row[SM_WORDS:]
            forms[forms == OPEN] = CONFINED
        return row

    def _filled(self, current: Mapping[int, Sequence[Grant]] | None) -> Row:
        row = np.zeros(self.width, np.uint32)
        row[:SM_WORDS] = OPEN
        position = {
            (task, request): at
            for at, (task, request) in enumerate(
                (task, request)
                for task in self._mix.normal
                for request in range(self._mix.tasks[task].in_flight)
            )
        }
        for (task, request, step), words in self._words.items():
            grants = (current or {}).get(task)
            grant = UNLIMITED if grants is None else grants[step]
            kernel = self._mix.tasks[task].program.steps[step].kernel
            held = self._share(grant, position[task, request]) if words.elastic else grant.blocks
            if grant.blocks >= UNLIMITED.blocks:
                held = OPEN
            elif not words.elastic:
                held = OPEN if grant.blocks >= kernel.blocks else 0
            form = words.threads.index(grant.threads) if grant.threads in words.threads else 0
            row[words.index + form] = held
        return row

    def _share(self, grant: Grant, position: int) -> int:
        """A grant is for all normal requests together: the part of the one at ``position``."""
        if grant == CLOSED:
            return 0
        first = grant.blocks * position // self.requests
        return grant.blocks * (position + 1) // self.requests - first


def sm_set(sms: Sequence[int]) -> Row:
    """The bits of the SMs ``sms``; MissingCapabilityError beyond 256."""
    if sms and max(sms) >= 32 * SM_WORDS:
        raise MissingCapabilityError(
            "device cuda", f"sets of up to {32 * SM_WORDS} SMs", "use a policy without SM sets"
        )
    words = np.zeros(SM_WORDS, np.uint32)
    for sm in sms:
        words[sm // 32] |= np.uint32(1 << sm % 32)
    return words
