"""Verification: what is wrong with a computed request, and where."""

import numpy as np
import pytest
from bench_fakes import BLOCKS, FakeNetworks, tiny_program
from numpy.typing import NDArray

from miriam.bench.verify import Checker, find_fault
from miriam.devices.contract import Completion

PROGRAM = tiny_program("net")
WANT = {"y": np.array([0, 1, 2, 3], np.float32)}


def done(
    y: NDArray[np.generic] | None = WANT["y"], counts: tuple[int, ...] = (1,) * BLOCKS
) -> Completion:
    outputs = {} if y is None else {"y": y}
    return Completion(0, 7, 0, 0, 9, outputs, (np.array(counts, np.int32),))


def test_the_right_output_with_each_block_once_has_no_fault() -> None:
    assert find_fault(PROGRAM, done(WANT["y"].copy()), WANT) is None


@pytest.mark.parametrize("times", [0, 2])
def test_a_block_that_did_not_run_once_is_named(times: int) -> None:
    fault = find_fault(PROGRAM, done(counts=(1, 1, 1, times, 1, 1)), WANT)
    assert fault == (
        f"step 0 (first): block 3 ran {times} times instead of once; blocks concerned: 1 of 6"
    )


def test_the_first_element_that_differs_is_named() -> None:
    fault = find_fault(PROGRAM, done(np.array([0, 1, 2.5, 4], np.float32)), WANT)
    assert fault == "output y: element 2 is 2.5, alone 2.0; elements concerned: 2 of 4"


def test_bits_are_compared_not_values() -> None:
    nan = {"y": np.array([np.nan, 0, 0, 0], np.float32)}
    assert find_fault(PROGRAM, done(nan["y"].copy()), nan) is None
    fault = find_fault(PROGRAM, done(np.array([-0.0, 1, 2, 3], np.float32)), WANT)
    assert fault is not None and "element 0 is -0.0, alone 0.0" in fault


def test_another_shape_or_type_is_a_fault() -> None:
    for other in (WANT["y"].reshape(2, 2), WANT["y"].astype(np.float64)):
        fault = find_fault(PROGRAM, done(other), WANT)
        assert fault is not None and fault.startswith("output y is float")


def test_missing_outputs_and_counts_are_faults() -> None:
    assert find_fault(PROGRAM, done(None), WANT) == "output y is missing"
    uncounted = Completion(0, 7, 0, 0, 9, WANT, ())
    assert find_fault(PROGRAM, uncounted, WANT) == ("blocks of 0 steps counted, the program has 1")
    short = done(counts=(1, 1))
    assert find_fault(PROGRAM, short, WANT) == ("step 0 (first): 2 blocks counted, the grid has 6")


def test_the_verdict_needs_something_computed_and_every_request_right() -> None:
    checker = Checker(FakeNetworks(), ["net"])
    checker.check(Completion(0, 1, 0, 0, 9), 0)
    assert checker.verdict is None
    checker.check(done(np.full(4, 2, np.float32)), 1)
    assert checker.verdict is True
    checker.check(done(np.full(4, 2, np.float32)), 2)
    assert checker.verdict is False
    (fault,) = checker.faults
    assert fault.startswith("task 0 (net) request 2: output y: element 0 is 2.0, alone 0.0")
