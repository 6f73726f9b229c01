"""The schedules of one normal kernel beside one critical kernel, pruned and ranked (section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil, prod

from miriam.errors import UsageError
from miriam.kernels import GpuSpec, KernelSpec
from miriam.shrink.limits import Critical, Limits, left_over
from miriam.shrink.scores import Overheads, oscore, wiscore
from miriam.shrink.slicing import dichotomy


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule (N_blk_be, S_blk_be): blocks of one shard, and threads of each block."""

    blocks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """What each rule alone and all rules together remove from ``total`` candidates.

    ``shares`` maps a rule's name to the share that it alone removes, in the order in which they
    are applied; ``joint`` is the share that at least one rule removes. ``kept`` is the rest,
    ranked by WIScore * OScore, best first.
    """

    total: int
    shares: tuple[tuple[str, float], ...]
    joint: float
    kept: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Space:
    """The design space of ``kernel`` beside ``critical`` on ``gpu``.

    ``literal`` takes Eq. 1 to Eq. 3 as the paper prints them. ``room`` is what the critical
    kernel leaves over where the caller knows more of it than Eq. 2 does.
    """

    gpu: GpuSpec
    critical: Critical
    kernel: KernelSpec
    overheads: Overheads
    literal: bool = False
    room: Limits | None = None

    @property
    def limits(self) -> Limits:
        """``room`` where it is given, else Eq. 2 for this pair of kernels."""
        return self.room or left_over(self.gpu, self.critical, literal=self.literal)

    def candidates(self) -> tuple[Candidate, ...]:
        """Every slice size of the plan with every variant's threads."""
        sizes = dichotomy(self.kernel.blocks, literal=self.literal)
        return tuple(Candidate(n, v.threads) for n in sizes for v in self.kernel.variants)

    def every(self) -> Iterator[Candidate]:
        """Every grid with every block size up to the original's: the space before slicing."""
        for blocks in range(1, self.kernel.blocks + 1):
            for threads in range(1, self.kernel.threads + 1):
                yield Candidate(blocks, threads)

    def score(self, candidate: Candidate) -> float:
        """WIScore * OScore, where every shard holds ``candidate`` and its blocks claim once."""
        shards = ceil(self.kernel.blocks / candidate.blocks)
        full = wiscore(
            self.gpu, self.critical, candidate.blocks, candidate.threads, literal=self.literal
        )
        return full * oscore(shards, shards, self.overheads)

    def prune(self, candidates: Iterable[Candidate] | None = None) -> Pruning:
        """Apply the rules to ``candidates`` (by default the plan's): Eq. 2's two lines, Eq. 4.

        UsageError where there is no candidate at all.
        """
        pool = self.candidates() if candidates is None else tuple(candidates)
        if not pool:
            raise UsageError("candidates", "at least one", pool)
        bound = self.limits
        scores = [self.score(c) for c in pool]
        rules = (
            ("blocks", [c.blocks <= bound.blocks for c in pool]),
            ("threads", [c.threads <= bound.threads for c in pool]),
            ("overhead", [score > 0 for score in scores]),
        )
        passed = [all(verdicts) for verdicts in zip(*(v for _, v in rules), strict=True)]
        kept = [(s, c) for s, c, passes in zip(scores, pool, passed, strict=True) if passes]
        return Pruning(
            total=len(pool),
            shares=tuple((name, verdicts.count(False) / len(pool)) for name, verdicts in rules),
            joint=passed.count(False) / len(pool),
            kept=tuple(c for _, c in sorted(kept, key=lambda pair: pair[0], reverse=True)),
        )


def full_space(kernels: Iterable[KernelSpec]) -> int:
    """How many schedules a model's kernels have together: the product of blocks * threads.

    Any grid with any block size up to the original's, for each kernel. The paper gives 2.2e25
    for AlexNet's convolutions and not how it counts; the product is our reading.
    """
    return prod(k.blocks * k.threads for k in kernels)


def best_measured(
    candidates: Iterable[Candidate],
    measure: Callable[[Candidate], float],
    share: float = 0.2,
) -> tuple[Candidate, ...]:
    """The best ``share`` of ``candidates`` by ``measure`` (less is better), at least one of any.

    The last offline step of section 2: what is left here goes to the run-time coordinator.
    """
    if not 0 < share <= 1:
        raise UsageError("share", "more than 0 and at most 1", share)
    ranked = sorted(candidates, key=measure)
    return tuple(ranked[: ceil(len(ranked) * share)])
