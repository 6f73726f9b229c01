"""Random kernels of fixed seeds are equal in every form; few are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from miriam import elasticize
from tests.fuzz.kernels import file_of, generate
from tests.fuzz.runner import MOST_REFUSED, PER_FILE, kept_seeds, run

_COUNT = 200


@pytest.mark.parametrize("first", range(0, _COUNT, PER_FILE))
def test_random_kernels_are_equal_in_every_form(first: int, tmp_path: Path) -> None:
    tally = run(range(first, first + PER_FILE), tmp_path)
    print(tally)
    assert not tally.faults, f"replay: make fuzz SEEDS={first} COUNT={PER_FILE}"
    assert tally.all == PER_FILE


def test_few_of_all_kernels_are_refused() -> None:
    files = [
        file_of([generate(seed) for seed in range(first, first + PER_FILE)])[0]
        for first in range(0, _COUNT, PER_FILE)
    ]
    kernels = [kernel for text in files for kernel in elasticize(text).kernels]
    refused = [k.name for k in kernels if not (k.grid.ok and k.yields.ok)]
    assert len(kernels) >= _COUNT
    assert len(refused) <= MOST_REFUSED * _COUNT, refused
    whole = [k.name for k in kernels if not k.block.ok]
    assert len(whole) <= MOST_REFUSED * _COUNT, whole


def test_kernels_that_once_showed_a_fault_are_equal(tmp_path: Path) -> None:
    seeds = kept_seeds()
    assert not seeds or not run(seeds, tmp_path).faults


def test_a_seed_gives_the_same_kernel_again() -> None:
    one, two = (file_of([generate(s) for s in range(50)]) for _ in range(2))
    assert one == two
