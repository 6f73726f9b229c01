"""The ladder: plans from closed to everything, by what they may cost a critical request.

Some normal steps can stand beside no critical step: their blocks run longer than the steps, or
every step wants all places. Beside a critical task that never pauses they would never run, and
their whole task would starve at them. A budget cures it: so much of the critical request's time
alone may be lost to such a step, spent where it costs least for the time that it gets.

The estimate: a block holds 1/n of an SM, where n of them fill one. Critical blocks beside it on
the SM go without that share; DRAM bandwidth beyond all there is, is missing. This lasts as long
as the critical step, and then until the last block, which is not taken away, is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from miriam.coordinator.leftover import TimedStep
from miriam.coordinator.plan import CLOSED, Grant, Plan
from miriam.kernels import GpuSpec, resident_blocks
from miriam.shrink import dichotomy

BUDGET = 0.1
"""Share of the critical task's time alone that a step which would starve may cost it."""

RUNGS = (0.0, 0.05, BUDGET, 0.2, 0.4)
"""The budgets of the rungs between closed and everything."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A grant beside one critical step.

    ``cost_ns``: what it costs a critical request, estimated. ``gain``: what it gives the normal
    step, blocks * ns.
    """

    step: int
    grant: Grant
    cost_ns: float
    gain: int


def rungs(plan: Callable[[float], Plan]) -> tuple[Plan, ...]:
    """The ladder of a mix, from the bottom: each plan may cost the critical tasks more.

    ``plan`` makes the mix's plan for a budget. On the first rung every normal step is held
    beside every critical one, on the last none is. Rungs that would be equal are left out.
    """
    plans = [plan(budget) for budget in RUNGS]
    closed = {
        pair: tuple((CLOSED,) * len(row) for row in table)
        for pair, table in plans[0].grants.items()
    }
    ladder = [replace(plans[0], grants=closed), *plans, replace(plans[0], grants={})]
    return tuple(rung for place, rung in enumerate(ladder) if rung not in ladder[:place])


def openings(
    gpu: GpuSpec, critical: Sequence[TimedStep], normal: TimedStep, budget: float
) -> Mapping[int, Grant]:
    """Grants by critical step for ``normal``, where their cost fits ``budget`` together.

    ``budget``: share of the time of all steps of ``critical``. The best value comes first. Where
    nothing fits, the cheapest one, so that the step does not starve; none for a budget of 0.
    """
    if not budget:
        return {}
    left_ns = budget * sum(timed.alone_ns for timed in critical)
    options = sorted(
        _options(gpu, critical, normal), key=lambda o: (o.cost_ns / max(o.gain, 1), -o.gain)
    )
    chosen: dict[int, Grant] = {}
    for option in options:
        if option.step not in chosen and option.cost_ns <= left_ns:
            chosen[option.step] = option.grant
            left_ns -= option.cost_ns
    if not chosen:
        cheapest = min(options, key=lambda o: o.cost_ns)
        chosen[cheapest.step] = cheapest.grant
    return chosen


def _options(gpu: GpuSpec, critical: Sequence[TimedStep], normal: TimedStep) -> Iterator[Opening]:
    kernel = normal.step.kernel
    total_ns = sum(timed.alone_ns for timed in critical)
    stays_ns = min(normal.block_ns(gpu), total_ns)
    losses = [_Loss(gpu, timed, normal) for timed in critical]
    for blocks in dichotomy(min(kernel.blocks, gpu.sms)):
        lost_ns = [
            loss.share(blocks) * t.alone_ns for loss, t in zip(losses, critical, strict=True)
        ]
        after_ns = sum(lost_ns) / max(total_ns, 1) * stays_ns
        grant = Grant(blocks, kernel.threads, ahead=True)
        for step, timed in enumerate(critical):
            yield Opening(step, grant, lost_ns[step] + after_ns, blocks * timed.alone_ns)


class _Loss:
    """The share of its speed that a critical step loses to blocks of a normal one beside it."""

    __slots__ = ("_blocks", "_memory", "_one_wave", "_per_sm", "_sms")

    def __init__(self, gpu: GpuSpec, critical: TimedStep, normal: TimedStep) -> None:
        kernel, share = normal.step.kernel, critical.memory_share(gpu)
        self._sms, self._blocks = gpu.sms, critical.step.kernel.blocks
        self._per_sm = resident_blocks(kernel, kernel.original, gpu.limits)
        self._one_wave = critical.waves(gpu) == 1
        # A few blocks that are bound by DRAM ask for as much of it as all of them.
        self._memory = max(0.0, min(share + normal.memory_share(gpu) - 1, share))

    def share(self, blocks: int) -> float:
        """What ``blocks`` normal blocks take."""
        if self._blocks + blocks <= self._sms:
            return self._memory
        # In one wave the slowest block ends the step; more waves even it out.
        of_sm = 1 / self._per_sm if self._one_wave else blocks / (self._sms * self._per_sm)
        return max(self._memory, of_sm)
