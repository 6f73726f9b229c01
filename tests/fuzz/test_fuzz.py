"""Random kernels of fixed seeds are equal in every form; few are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.kernels import file_of, generate
from tests.fuzz.runner import PER_FILE, kept_seeds, run

_COUNT = 200


@pytest.mark.parametrize("first", range(0, _COUNT, PER_FILE))
def test_random_kernels_are_equal_in_every_form(first: int, tmp_path: Path) -> None:
    tally = run(range(first, first + PER_FILE), tmp_path)
    print(tally)
    assert not list(tally.problems()), f"replay: make fuzz SEEDS={first} COUNT={PER_FILE}"
    assert tally.all == PER_FILE


def test_kernels_that_once_showed_a_fault_are_equal(tmp_path: Path) -> None:
    seeds = kept_seeds()
    assert not seeds or not run(seeds, tmp_path).faults


def test_a_seed_gives_the_same_kernel_again() -> None:
    one, two = (file_of([generate(s) for s in range(50)]) for _ in range(2))
    assert one == two
