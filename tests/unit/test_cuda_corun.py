"""What is measured beside a critical request on CUDA: under which grants, and how it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings")

from fake_cuda import OK, FakeDriver, device_of, fake

from miriam.coordinator import UNLIMITED, Grant
from miriam.coordinator.corun import Trial
from miriam.devices.cuda import corun
from miriam.devices.cuda.words import OPEN, SM_WORDS, sm_set
from tests.kernels.programs import two_steps


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return fake(monkeypatch)


def test_claims_beyond_the_blocks_of_a_launch_are_no_work() -> None:
    """A block that finds nothing left has claimed as well; other units use more counters."""
    nothing: Any = None
    blocks, block_ns = np.array([2, 2]), np.array([10_000.0, 5_000.0])
    normal = corun._Normal(nothing, nothing, blocks, block_ns, 0.0)
    claimed = np.array([[0, 0, 9], [5, 0, 9], [5, 1, 9]], np.uint32)
    seen = corun._Seen(np.array([50_000.0, 20_000.0]), claimed)
    assert corun._progress(seen, normal) == pytest.approx([20 / 50, 5 / 20])


def test_each_trial_runs_under_its_grant_with_counters_from_zero(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And ends with a grant for nothing, so that what is left of the normal graph falls through."""
    fills: list[tuple[int, int]] = []

    def fill(at: int, value: int, words: int, stream: object) -> tuple[Any, ...]:
        fills.append((value, words))
        return (OK,)

    device, program = device_of(), two_steps()
    profiles = device.profile(program), device.profile(program)
    monkeypatch.setattr(driver, "cuMemsetD32Async", fill, raising=False)
    grants = UNLIMITED, Grant(3, 64, ahead=True)
    trials = [Trial((0, 2), (0, 1), grant) for grant in grants]
    device._corunner.measure((program, program), profiles, trials)
    in_turn = [fill[0] if fill[1] == 1 else "counters" for fill in fills]
    runs = corun.RUNS
    assert in_turn == [0, *[UNLIMITED.blocks, "counters"] * runs, *[3, "counters"] * runs, 0]


def test_a_confined_trial_runs_with_the_hardwares_numbers_of_its_sms(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The H200 of these tests has its SMs' numbers in their order."""
    device, program = device_of(), two_steps()
    profiles = device.profile(program), device.profile(program)
    sets: list[list[int]] = []
    monkeypatch.setattr(corun, "upload", lambda address, words: sets.append(words.tolist()))
    trials = [Trial((0, 2), (0, 1), Grant(UNLIMITED.blocks, sms=sms)) for sms in (None, (96, 132))]
    device._corunner.measure((program, program), profiles, trials)
    anywhere, confined = [OPEN] * SM_WORDS, sm_set(range(96, 132)).tolist()
    assert sets == [anywhere] * corun.RUNS + [confined] * corun.RUNS


def test_a_slow_down_is_the_time_beside_over_that_alone(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median of the runs; progress is their mean."""
    device, program = device_of(), two_steps()
    profiles = device.profile(program), device.profile(program)
    times, shares = iter([2.0, 9.0, 3.0]), iter([0.2, 0.4, 0.9])

    def beside(bench: corun._Bench, normal: object, grant: Grant) -> corun._Seen:
        return corun._Seen(bench._alone_ns * next(times), np.zeros((1, 1), np.uint32))

    monkeypatch.setattr(corun._Bench, "_beside", beside)
    monkeypatch.setattr(corun, "_progress", lambda seen, normal: np.array([next(shares)]))
    trials = [Trial((0, 2), (0, 1), UNLIMITED)]
    (found,) = device._corunner.measure((program, program), profiles, trials)
    assert [found.slowdown, found.progress] == pytest.approx([3.0, 0.5])
