"""The dynamic-sized shaded binary tree: which blocks of one launch run when, each exactly once.

The root is the kernel with its initial grid M, a node a part of its logical blocks, the node's
shade the elastic block size. Beside a critical kernel the coordinator takes a head slice; the
edges lead on to the slices of what that leaves unfinished::

    16 blocks                                       root
    |-- 4   blocks 0-3, 128 threads                 actual shard, beside a critical kernel
    `-- 12  blocks 4-15                             left over
        |-- 1  2  6  12, at 64 or 128 threads       virtual shards, never dispatched
        `-- 3   blocks 4-6, 64 threads              actual shard: the next one leaves less
            |-- 1   block 4                         ran, then the shard yielded
            `-- 11  blocks 5-15, 128 threads        actual shard: alone again, so everything

Only the head is ever cut, so the tree is kept as what it comes to: the start of the part that was
never dispatched, the gaps before it that yields gave back, and the shards under way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from miriam.errors import UsageError
from miriam.shrink import dichotomy


@dataclass(frozen=True, slots=True)
class Shard:
    """Contiguous logical blocks from ``start``, dispatched at ``threads`` per physical block."""

    start: int
    count: int
    threads: int

    @property
    def stop(self) -> int:
        """The first logical block after it."""
        return self.start + self.count


class ShadedTree:
    """The tree of one launch of ``blocks`` logical blocks, in any of the ``shades`` (threads).

    ``literal`` slices as Eq. 1 is printed, so that an odd part is dispatched whole or not at all.
    Taking from a contiguous head and completing cost O(1), whatever the number of shards.
    """

    __slots__ = (
        "_gaps",
        "_held",
        "_literal",
        "_next",
        "_remaining",
        "_settled",
        "blocks",
        "shades",
    )

    def __init__(self, blocks: int, shades: Sequence[int], *, literal: bool = False) -> None:
        if blocks < 1:
            raise UsageError("blocks", "at least one logical block", blocks)
        if not shades or min(shades) < 1:
            raise UsageError("shades", "at least one number of threads, each at least 1", shades)
        self.blocks = blocks
        self.shades = tuple(sorted(set(shades)))
        self._literal = literal
        self._next = 0
        self._remaining = blocks
        self._gaps: list[tuple[int, int]] = []
        self._held: dict[int, Shard] = {}
        self._settled: list[Shard] = []

    @property
    def remaining(self) -> int:
        """Logical blocks that have neither run nor been dispatched."""
        return self._remaining

    @property
    def finished(self) -> bool:
        """Whether every logical block has run."""
        return not self._remaining and not self._held

    @property
    def actual(self) -> tuple[Shard, ...]:
        """The shards dispatched so far, as far as they ran; those under way come last."""
        return (*self._settled, *self._held.values())

    @property
    def degree(self) -> int:
        """Sharding degree: how often M was halved to reach the smallest actual shard."""
        smallest = min((s.count for s in self.actual), default=self.blocks)
        return sum(size > smallest for size in dichotomy(self.blocks))

    def virtual(self) -> tuple[Shard, ...]:
        """The possible next shards: every head slice of what is left, in every shade."""
        if not self._remaining:
            return ()
        start, stop = self._head()
        sizes = dichotomy(stop - start, literal=self._literal)
        return tuple(Shard(start, size, shade) for size in sizes for shade in self.shades)

    def head(self, max_blocks: int, max_threads: int) -> Shard | None:
        """The largest virtual shard within both limits, None if there is none; takes nothing."""
        shades = [shade for shade in self.shades if shade <= max_threads]
        if not shades or not self._remaining:
            return None
        start, stop = self._head()
        sizes = dichotomy(stop - start, literal=self._literal)
        count = max((size for size in sizes if size <= max_blocks), default=0)
        return Shard(start, count, shades[-1]) if count else None

    def take(self, count: int, threads: int) -> Shard:
        """Dispatch the next ``count`` blocks, fewer where the contiguous head ends before.

        It is an actual shard from now on, until ``complete`` or ``give_back`` gets this very
        object. UsageError for an unknown shade, for less than one block, or if nothing is left.
        """
        if count < 1 or threads not in self.shades:
            raise UsageError(
                "shard", f"at least 1 block, threads of {self.shades}", (count, threads)
            )
        start, stop = self._head()
        if start == stop:
            raise UsageError("shard", "some block is left", (count, threads), "ask remaining first")
        count = min(count, stop - start)
        if not self._gaps:
            self._next = start + count
        elif start + count == stop:
            del self._gaps[0]
        else:
            self._gaps[0] = (start + count, stop)
        self._remaining -= count
        shard = self._held[start] = Shard(start, count, threads)
        return shard

    def complete(self, shard: Shard) -> None:
        """All blocks of ``shard`` have run; UsageError unless it is under way."""
        self._release(shard)
        self._settled.append(shard)

    def give_back(self, shard: Shard, done: int) -> None:
        """``shard`` stopped after its first ``done`` blocks; the others are left to run again.

        UsageError unless it is under way and ``done`` is 0 to its count.
        """
        if not 0 <= done <= shard.count:
            raise UsageError("done", f"0 to the {shard.count} blocks of {shard}", done)
        self._release(shard)
        if done:
            self._settled.append(Shard(shard.start, done, shard.threads))
        if done < shard.count:
            self._remaining += shard.count - done
            self._reopen(shard.start + done, shard.stop)

    def _head(self) -> tuple[int, int]:
        return self._gaps[0] if self._gaps else (self._next, self.blocks)

    def _release(self, shard: Shard) -> None:
        # Identity, not equality: after a yield of nothing, an equal shard may be under way.
        if self._held.get(shard.start) is not shard:
            raise UsageError(
                "shard",
                "under way: taken, and not completed or given back",
                shard,
                "keep what take returned",
            )
        del self._held[shard.start]

    def _reopen(self, start: int, stop: int) -> None:
        gaps = self._gaps
        at = bisect_left(gaps, (start, stop))
        if at < len(gaps) and gaps[at][0] == stop:
            stop = gaps.pop(at)[1]
        if at and gaps[at - 1][1] == start:
            at -= 1
            start = gaps.pop(at)[0]
        if stop == self._next:
            self._next = start
        else:
            gaps.insert(at, (start, stop))

    def __str__(self) -> str:
        """One line per actual shard and per range that is left, in the order of the blocks."""
        lines = [f"{self.blocks} blocks, degree {self.degree}"]
        parts = [(s.start, s.stop, f"{s.threads} threads") for s in self.actual]
        left = [*self._gaps, (self._next, self.blocks)]
        parts += [(start, stop, "left") for start, stop in left if start < stop]
        parts.sort()
        lines += [f"|-- {stop - start} [{start}, {stop}) {what}" for start, stop, what in parts]
        return "\n".join([*lines[:-1], lines[-1].replace("|--", "`--")])
