"""``make fuzz SEEDS=0 COUNT=2000``: judges the kernels of COUNT seeds from SEEDS on."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fuzz.runner import PER_FILE, Tally, run

_KEPT = Path("out/fuzz")


def main() -> int:
    """Print what came out; 1 on a fault, the file of which stays in out/fuzz."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, metavar="FIRST")
    parser.add_argument("--count", type=int, default=2000)
    asked = parser.parse_args()
    begun, tally = time.monotonic(), Tally()
    for part in _tallies(range(asked.seeds, asked.seeds + asked.count)):
        tally.add(part)
        for fault in part.faults:
            print(fault, flush=True)
        print(f"\r{tally}", end="", file=sys.stderr, flush=True)
    rate = tally.all / (time.monotonic() - begun)
    print(f"\r{tally}; {rate:.1f} kernels/s on {len(os.sched_getaffinity(0))} cores")
    for reason, seeds in tally.refused.items():
        print(f"refused, {reason}: seeds {' '.join(map(str, sorted(seeds)))}")
    problems = list(tally.problems())
    if tally.faults:
        print(f"replay: miriam verify {_KEPT}/seeds_*.cu with the .toml beside it, or --seeds SEED")
    return bool(problems)


def _tallies(seeds: Sequence[int]) -> Iterator[Tally]:
    # Thousands of objects that nobody asks for again stay out of the user's cache.
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MIRIAM_CACHE_DIR"] = cache
        with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            parts = [seeds[at : at + PER_FILE] for at in range(0, len(seeds), PER_FILE)]
            yield from pool.map(run, parts, [_KEPT] * len(parts))


if __name__ == "__main__":
    sys.exit(main())
