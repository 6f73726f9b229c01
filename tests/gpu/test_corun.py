"""Measured co-running: what one stirring kernel does beside another where the answer is known."""

from __future__ import annotations

import pytest

from miriam.coordinator import CLOSED, UNLIMITED, Grant
from miriam.coordinator.corun import CoRun, Trial
from miriam.devices.cuda.corun import CoRunner
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.profile import resident_blocks
from tests.kernels.programs import stirred

ROUNDS, STEPS = 1_000, 20
UNIT = (0, 1)


@pytest.fixture
def runner(device: CudaDevice) -> CoRunner:
    """It knows nothing yet."""
    return CoRunner(device.world, device.kernels, device.controls.function("miriam_where"))


def beside(
    device: CudaDevice, runner: CoRunner, blocks: int, grant: Grant, rounds: int = ROUNDS // 5
) -> tuple[CoRun, ...]:
    """A unit of ``rounds`` beside both halves of a critical request, of ``blocks`` blocks each."""
    critical, normal = stirred(blocks, ROUNDS, STEPS), stirred(blocks, rounds)
    profiles = device.profile(critical), device.profile(normal)
    halves = (0, STEPS // 2), (STEPS // 2, STEPS)
    trials = [Trial(half, UNIT, grant) for half in halves]
    found = runner.measure((critical, normal), profiles, trials)
    assert [corun.trial for corun in found] == trials
    return found


def test_what_may_hold_nothing_comes_no_further(device: CudaDevice, runner: CoRunner) -> None:
    for corun in beside(device, runner, device.gpu.sms, CLOSED):
        assert corun.progress == 0
        assert corun.slowdown < 1.2


def test_blocks_that_fit_side_by_side(device: CudaDevice, runner: CoRunner) -> None:
    for corun in beside(device, runner, device.gpu.sms, UNLIMITED):
        assert corun.slowdown < 1.3
        assert corun.progress > 0.5


def test_where_both_fill_every_sm_one_of_them_waits(device: CudaDevice, runner: CoRunner) -> None:
    one = stirred(1, ROUNDS)
    device.profile(one)
    (function,), kernel = device.functions(one), one.steps[0].kernel
    full = resident_blocks(function, kernel.threads, kernel, device.world)
    for corun in beside(device, runner, full, UNLIMITED):
        assert corun.slowdown > 1.2 or corun.progress < 0.7


def test_equal_trials_are_not_measured_twice(device: CudaDevice, runner: CoRunner) -> None:
    """Two measurements do not give the same bits; ``rounds`` is an argument of the same kernel."""
    first = beside(device, runner, device.gpu.sms, UNLIMITED)
    assert beside(device, runner, device.gpu.sms, UNLIMITED) == first
    assert beside(device, runner, device.gpu.sms, UNLIMITED, rounds=ROUNDS) != first
