"""How long an SM is busy with the inner loop of a kernel that was not tuned.

``Cost.flop`` counts multiply-adds at the peak rate, which suits a tiled kernel. A naive one keeps
the SM busy with loads, index arithmetic or fp64 instead. So its cost is given in multiply-adds
that would keep the SM busy for as long: per turn of the loop and warp, the longest of

* issue: instructions / 4, as an SM has four schedulers with one instruction per clock each;
* load: for each load, the bytes that L1 hands over / L1's bytes per clock. L1 gives whole sectors
  of 32 bytes, one for each that the warp's lanes touch, and looks up 128 bytes' worth of lanes
  per pass at best, even where all lanes read one value;
* fp64: fp64 instructions * 32 / fp64 lanes.

The simulator's ``issue_efficiency`` then applies as it does to tiled kernels. A block with few
warps is slow for the same reason as everywhere in the model (``saturating_warps``); for fp64 on
GPUs with two lanes, which three warps saturate, that is up to 2.7 times too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.errors import UnknownNameError

SECTOR_BYTES = 32
WARP = 32
_SCHEDULERS = 4
_PASS_BYTES = 128

UNIFORM = 1.0
"""Sectors of a load of one value by all lanes."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """An SM's lanes and L1: "Throughput of Native Arithmetic Instructions" and the occupancy
    tables of the CUDA C++ Programming Guide 13.0, architecture whitepapers for L1's bytes per
    clock; sm_110's fp64 is an estimate."""

    fp32_lanes: int
    fp64_lanes: int
    l1_bytes_per_clock: int


PIPES: dict[str, Pipes] = {
    "sm_72": Pipes(64, 32, 128),
    "sm_75": Pipes(64, 2, 64),
    "sm_80": Pipes(64, 32, 128),
    "sm_86": Pipes(128, 2, 128),
    "sm_87": Pipes(128, 2, 128),
    "sm_89": Pipes(128, 2, 128),
    "sm_90": Pipes(128, 64, 128),
    "sm_110": Pipes(128, 2, 128),
}

L1_BYTES = 64 * 1024
"""What a block re-reads within is served by L1; beyond it, by L2. The least of the parts here."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One turn of an inner loop per thread, as nvdisasm shows it for sm_75.

    ``loads``: the sectors that a warp touches in each load of the turn.
    """

    instructions: float
    loads: Sequence[float] = ()
    fp64: float = 0.0

    def flop(self, arch: str) -> float:
        """FLOP of one warp that keep an SM of ``arch`` busy for as long as a turn does."""
        if arch not in PIPES:
            raise UnknownNameError("architecture", arch, PIPES)
        pipes = PIPES[arch]
        loaded_bytes = sum(max(SECTOR_BYTES * sectors, _PASS_BYTES) for sectors in self.loads)
        clocks = max(
            self.instructions / _SCHEDULERS,
            loaded_bytes / pipes.l1_bytes_per_clock,
            self.fp64 * WARP / pipes.fp64_lanes,
        )
        return 2 * pipes.fp32_lanes * clocks


def strided(block: tuple[int, int], x_bytes: int, y_bytes: int = 0) -> float:
    """Mean sectors per load of a warp whose thread (x, y) reads at x * x_bytes + y * y_bytes."""
    width, height = block
    threads = [(i % width, i // width) for i in range(width * height)]
    warps = [threads[i : i + WARP] for i in range(0, len(threads), WARP)]
    touched = [len({(x * x_bytes + y * y_bytes) // SECTOR_BYTES for x, y in w}) for w in warps]
    return sum(touched) / len(touched)
