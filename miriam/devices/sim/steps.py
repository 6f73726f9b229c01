"""A step on the simulated GPU: the original kernel as a whole, or elastic from a shaded tree."""

from __future__ import annotations

from collections.abc import Callable

from miriam.coordinator import UNLIMITED, Grant, ShadedTree, Shard
from miriam.devices.sim.residents import Launch

Execute = Callable[[int, int, int], None]
"""Runs logical blocks for real: first, count, threads per physical block (0: the original)."""


class Ledger:
    """What the coordinator accounts for: physical blocks that all normal steps hold together."""

    __slots__ = ("freed", "held")

    def __init__(self) -> None:
        self.held = 0
        self.freed = False

    def release(self, blocks: int) -> None:
        """``blocks`` have gone: a gate that waits for room may look again."""
        self.held -= blocks
        self.freed = True


class WholeStep:
    """All blocks of the original kernel, once started not to be stopped."""

    __slots__ = ("_blocks", "_execute", "_finished", "_ledger", "_next", "_on_end")

    def __init__(
        self,
        blocks: int,
        ledger: Ledger | None,
        execute: Execute | None,
        on_end: Callable[[], None],
    ) -> None:
        """``ledger``: None for a critical step, whose blocks no grant counts."""
        self._blocks = blocks
        self._next = self._finished = 0
        self._execute = execute
        self._on_end = on_end
        self._ledger = ledger
        if ledger:
            ledger.held += blocks

    def room(self) -> int:
        """All blocks that have not started."""
        return self._blocks - self._next

    def take(self, blocks: int, zone: int) -> tuple[int, int]:
        """The next ``blocks`` logical blocks."""
        first = self._next
        self._next += blocks
        return first, blocks

    def done(self, first: int, count: int) -> None:
        """These blocks have run; the last ones end the step."""
        if self._execute:
            self._execute(first, count, 0)
        self._finished += count

    def left(self, blocks: int) -> None:
        """Their places are free."""
        if self._ledger:
            self._ledger.release(blocks)
        if self._finished == self._blocks:
            self._on_end()


class ElasticStep:
    """Persistent blocks that claim logical blocks under a grant.

    They leave when the grant shrinks, and those on SMs that it excludes. All of them leave, and
    what is left is launched anew, when another grant takes the place of a limited one (the
    critical blocks lie elsewhere by then) and when at least twice as many could run; not before
    each has run a block, so that steps that share a grant do not give way to each other for ever.
    """

    __slots__ = (
        "_claimed",
        "_execute",
        "_fits",
        "_grant",
        "_launch",
        "_ledger",
        "_on_stop",
        "_physical",
        "_shard",
        "_under",
        "_width",
        "_zones",
        "tree",
    )

    def __init__(
        self,
        tree: ShadedTree,
        grant: Callable[[], Grant],
        zones: Callable[[Grant], int],
        ledger: Ledger,
        execute: Execute | None,
        on_stop: Callable[[], None],
    ) -> None:
        """``grant`` reads the words; ``on_stop``: no physical block is left."""
        self.tree = tree
        self._grant = grant
        self._zones = zones
        self._ledger = ledger
        self._execute = execute
        self._on_stop = on_stop

    def begin(self, launch: Launch, shard: Shard, fits: Callable[[Grant], int]) -> None:
        """``launch`` runs ``shard``; ``fits``: how many of its blocks a grant's SMs can hold."""
        self._launch, self._shard, self._fits = launch, shard, fits
        self._claimed = 0
        self._under = self._grant()
        self._width = self._physical = launch.pending
        self._ledger.held += launch.pending

    def room(self) -> int:
        """How many of the blocks not placed yet may start; the others never will.

        None where some of the launch's SMs are excluded by now: it could place them there.
        """
        pending = self._launch.pending
        zones = self._launch.zones
        grant = self._grant()
        excluded = zones & ~self._zones(grant) if grant.sms else 0
        starting = 0 if excluded else self._staying(pending, zones, grant)
        if starting < pending:
            self._gone(pending - starting)
        return starting

    def take(self, blocks: int, zone: int) -> tuple[int, int]:
        """Claims of ``blocks`` physical blocks; those that get nothing leave."""
        staying = self._staying(blocks, zone, self._grant())
        first = self._shard.start + self._claimed
        self._claimed += staying
        return first, staying

    def done(self, first: int, count: int) -> None:
        """These blocks have run."""
        if self._execute:
            self._execute(first, count, self._shard.threads)

    def left(self, blocks: int) -> None:
        """These physical blocks have gone."""
        self._gone(blocks)

    def _staying(self, blocks: int, zone: int, grant: Grant) -> int:
        unclaimed = self._shard.count - self._claimed
        if grant.threads and grant.threads != self._shard.threads:
            return 0
        if grant.sms and not zone & self._zones(grant):
            return 0
        if self._claimed >= self._width:
            if grant != self._under and grant is not UNLIMITED:
                return 0
            wider = 2 * self._physical
            others = self._ledger.held - self._physical
            if unclaimed >= wider and grant.blocks - others >= wider and self._fits(grant) >= wider:
                return 0
        excess = max(0, self._ledger.held - grant.blocks)
        return max(0, min(blocks - excess, unclaimed))

    def _gone(self, blocks: int) -> None:
        self._ledger.release(blocks)
        self._physical -= blocks
        if not self._physical:
            if self._claimed == self._shard.count:
                self.tree.complete(self._shard)
            else:
                self.tree.give_back(self._shard, self._claimed)
            self._on_stop()
