"""Which tile of the output a block of the convolution makes, and how much of the sum."""

from __future__ import annotations

from dataclasses import dataclass

_THREADS = 128
_THREAD_N = 4

# Timed for every convolution of the networks on 8, 16 and 32 SMs of an H200: from some 24 blocks
# on the largest tile is fastest, even with a third more padding than a small one.
_ENOUGH_BLOCKS = 24
_PADDING_ALLOWED = 1.4

PART_FLOP = 1.6e6
"""About what a block does: where there is more, several share the sum out, however many blocks
there are already. Normal work leaves when its blocks end, so a longer sum is to mean more blocks,
not longer ones. What this and other sizes bring in the simulator: docs/results/conv-parts.md."""


def ceil_div(value: int, unit: int) -> int:
    """``value / unit``, rounded up."""
    return -(-value // unit)


@dataclass(frozen=True, slots=True)
class Tile:
    """``m`` channels by ``n`` pixels for 128 threads, ``thread_m`` by 4 of them per thread."""

    m: int
    n: int
    thread_m: int

    @property
    def slice(self) -> int:
        """How much of the sum is staged in shared memory at a time (``kSlice`` in conv.cu)."""
        pieces = self.m * self.n // (self.thread_m * _THREAD_N)
        return 16 if pieces == _THREADS else 32

    def parts(self, depth: int) -> tuple[int, int]:
        """In how many parts a sum over ``depth`` is made, and how many slices each has."""
        slices = ceil_div(depth, self.slice)
        flop = 2 * self.m * self.n * self.slice * slices
        share = ceil_div(slices, max(1, round(flop / PART_FLOP)))
        return ceil_div(slices, share), share

    def blocks(self, channels: int, pixels: int) -> int:
        """Blocks that cover an output."""
        return ceil_div(channels, self.m) * ceil_div(pixels, self.n)

    def padding(self, channels: int, pixels: int) -> float:
        """Computed elements over needed ones."""
        return self.blocks(channels, pixels) * self.m * self.n / (channels * pixels)


# From the most reuse of a loaded value to the least.
TILES = (Tile(64, 64, 8), Tile(32, 32, 4), Tile(16, 64, 4), Tile(16, 32, 4))


def choose_tile(channels: int, pixels: int) -> Tile:
    """The tile with most reuse that makes enough blocks and pads little; else the most blocks."""
    least = min(tile.padding(channels, pixels) for tile in TILES)
    fits = [t for t in TILES if t.padding(channels, pixels) <= least * _PADDING_ALLOWED]
    for tile in fits:
        if tile.blocks(channels, pixels) >= _ENOUGH_BLOCKS:
            return tile
    return max(fits, key=lambda tile: tile.blocks(channels, pixels))
