"""Writes docs/results/conv-parts.md: what it brings to make the sums of convolutions in parts.

python -m benchmarks.conv_parts > docs/results/conv-parts.md
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from math import inf

from miriam import __version__, devices, models
from miriam.bench.progress import step_times
from miriam.coordinator import Task
from miriam.coordinator.leftover import TimedStep
from miriam.coordinator.policies import get
from miriam.devices.contract import Device
from miriam.kernels import Program
from miriam.models import tiles

GPUS = ("orin", "xavier", "rtx2060", "h200:16", "h200:32", "h200")
NETWORKS = ("alexnet", "squeezenet", "resnet50")
FLOP = (inf, 2.0e6, tiles.PART_FLOP, 1.2e6)
HEAD = """# Sums of convolutions in parts, simulated

**Every figure on this page is simulated**; no GPU was involved. Made by
`python -m benchmarks.conv_parts` with Miriam {version} on {date}.

*MFLOP*: what a block of a convolution does about (`PART_FLOP` in `miriam/models/tiles.py`, where it
is {used:g}); *whole*: each sum in one block, however long. *request*: a network alone, from its
first kernel on, us. *block*: how long its blocks run, us, each step weighted by its time; in
brackets the longest. Normal work leaves when its blocks end.
"""


@contextmanager
def parts_of(flop: float) -> Iterator[None]:
    """Networks that are made meanwhile have blocks of about ``flop``."""
    before, tiles.PART_FLOP = tiles.PART_FLOP, flop
    try:
        yield
    finally:
        tiles.PART_FLOP = before


def figures(device: Device, program: Program) -> str:
    """A network's request alone, its mean block and its longest, us."""
    session = device.open([Task("alone", program, critical=True)], get("multistream"))
    session.submit(0, 0)
    (done,) = session.advance(10**12)
    times_ns = step_times(device, program)
    steps = [TimedStep(step, ns) for step, ns in zip(program.steps, times_ns, strict=True)]
    blocks_us = [step.block_ns(device.gpu) / 1e3 for step in steps]
    mean_us = sum(b * ns for b, ns in zip(blocks_us, times_ns, strict=True)) / sum(times_ns)
    request_us = (done.finish_ns - done.start_ns) / 1e3
    return f"{request_us:,.0f} | {mean_us:.0f} ({max(blocks_us):.0f})"


def main() -> None:
    """Print the page."""
    today = date.today().isoformat()
    print(HEAD.format(version=__version__, date=today, used=tiles.PART_FLOP / 1e6))
    columns = " | ".join(f"{name}: request | block" for name in NETWORKS)
    print(f"| GPU | MFLOP | {columns} |\n|---|---|{'---|' * 2 * len(NETWORKS)}")
    for gpu in GPUS:
        device = devices.get(f"sim:{gpu}")
        for flop in FLOP:
            with parts_of(flop):
                programs = [models.load(name, device.gpu.arch) for name in NETWORKS]
            size = "whole" if flop == inf else f"{flop / 1e6:g}"
            print(f"| {gpu} | {size} | {' | '.join(figures(device, p) for p in programs)} |")


if __name__ == "__main__":
    main()
