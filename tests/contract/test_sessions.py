"""What every device promises: each request completes once, each block runs once, bits are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from miriam.coordinator import Task
from miriam.coordinator.policies import get as get_policy
from miriam.devices.contract import Completion, Device, Session
from miriam.devices.host import Host
from miriam.errors import UsageError
from tests.kernels.programs import two_steps, two_steps_inputs, two_steps_sums, two_steps_weights

SECOND_NS = 1_000_000_000


def tasks() -> list[Task]:
    return [
        Task("critical", two_steps("first"), critical=True, weights=two_steps_weights(1)),
        Task("normal", two_steps("second"), in_flight=2, weights=two_steps_weights(2)),
    ]


@contextmanager
def session(device: Device, policy: str = "multistream") -> Iterator[Session]:
    opened = device.open(tasks(), get_policy(policy))
    yield opened
    opened.close()


def drain(opened: Session, count: int) -> list[Completion]:
    """Advance until ``count`` requests have completed, or a minute has passed."""
    done: list[Completion] = []
    while len(done) < count and opened.now_ns < 60 * SECOND_NS:
        done += opened.advance(opened.now_ns + SECOND_NS)
    return done


def submit_six(opened: Session) -> list[tuple[int, int]]:
    """Two critical and four normal requests that arrive 10 us apart; (task, request) of each."""
    now = opened.now_ns
    order = (1, 0, 1, 1, 0, 1)
    return [
        (task, opened.submit(task, now + 10_000 * i, two_steps_inputs(i)))
        for i, task in enumerate(order)
    ]


def keys(done: Sequence[Completion]) -> list[tuple[int, int]]:
    return [(c.task, c.request) for c in done]


@pytest.mark.parametrize("policy", ["sequential", "multistream", "gate", "miriam"])
def test_every_request_completes_exactly_once(device: Device, policy: str) -> None:
    with session(device, policy) as opened:
        submitted = submit_six(opened)
        done = drain(opened, len(submitted))
        assert sorted(keys(done)) == sorted(submitted)
        assert len(set(submitted)) == len(submitted)
        assert list(opened.advance(opened.now_ns + 1_000)) == []


def test_requests_of_a_task_start_in_order_of_arrival(device: Device) -> None:
    with session(device) as opened:
        submit_six(opened)
        done = sorted(drain(opened, 6), key=lambda c: c.start_ns)
    for task in (0, 1):
        arrivals = [c.arrival_ns for c in done if c.task == task]
        assert arrivals == sorted(arrivals)


def test_a_later_submission_can_arrive_earlier(device: Device) -> None:
    with session(device) as opened:
        now = opened.now_ns
        late = opened.submit(0, now + 50_000_000, two_steps_inputs(0))
        early = opened.submit(0, now + 1_000_000, two_steps_inputs(1))
        assert [c.request for c in drain(opened, 2)] == [early, late]


def test_times_are_in_order(device: Device) -> None:
    with session(device) as opened:
        submit_six(opened)
        done = drain(opened, 6)
        assert all(c.arrival_ns <= c.start_ns <= c.finish_ns <= opened.now_ns for c in done)
        assert [c.finish_ns for c in done] == sorted(c.finish_ns for c in done)


def test_time_goes_on_while_a_session_waits(device: Device) -> None:
    with session(device) as opened:
        opened.submit(0, opened.now_ns + SECOND_NS, two_steps_inputs(0))
        until = opened.now_ns + 1_000_000
        assert list(opened.advance(until)) == []
        assert opened.now_ns >= until


@pytest.mark.parametrize("policy", ["multistream", "miriam"])
def test_every_logical_block_ran_exactly_once(device: Device, policy: str) -> None:
    with session(device, policy) as opened:
        submit_six(opened)
        for completion in drain(opened, 6):
            assert completion.runs is not None
            assert [len(counts) for counts in completion.runs] == [16, 16]
            assert all((counts == 1).all() for counts in completion.runs)


@pytest.mark.parametrize("policy", ["multistream", "miriam"])
def test_outputs_equal_the_solo_outputs_bit_for_bit(device: Device, policy: str) -> None:
    with session(device, policy) as opened:
        submitted = submit_six(opened)
        done = {(c.task, c.request): c for c in drain(opened, 6)}
    host = Host(workers=1)
    for number, key in enumerate(submitted):
        task, inputs = tasks()[key[0]], two_steps_inputs(number)
        solo = host.load(task.program, task.weights).request()
        solo.write(inputs)
        solo.run_all()
        outputs = done[key].outputs
        assert outputs is not None and outputs.keys() == {"sums"}
        assert outputs["sums"].tobytes() == solo.outputs()["sums"].tobytes()
        assert np.allclose(outputs["sums"], two_steps_sums(task.weights, inputs), atol=1e-4)


@pytest.mark.parametrize("task", [-1, 2])
def test_an_unknown_task_is_a_usage_error(device: Device, task: int) -> None:
    with session(device) as opened, pytest.raises(UsageError, match=r"task: 0 to 1, got"):
        opened.submit(task, opened.now_ns, two_steps_inputs(0))


def test_wrong_inputs_are_usage_errors(device: Device) -> None:
    with session(device) as opened:
        now = opened.now_ns + SECOND_NS
        good = two_steps_inputs(0)
        with pytest.raises(UsageError, match=r"unknown name, got 'y'.*known: x"):
            opened.submit(0, now, {"y": good["x"]})
        with pytest.raises(UsageError, match="input x: an array for each one, got None"):
            opened.submit(0, now)
        with pytest.raises(UsageError, match=r"input x: shape \(1000,\), got \(999,\)"):
            opened.submit(0, now, {"x": good["x"][1:]})
        with pytest.raises(UsageError, match="input x: dtype float32, got 'float64'"):
            opened.submit(0, now, {"x": good["x"].astype(np.float64)})


def test_usage_is_a_share(device: Device) -> None:
    with session(device) as opened:
        submit_six(opened)
        drain(opened, 6)
        used = opened.usage()
        assert 0.0 < used.achieved_occupancy <= 1.0
        assert 0.0 < used.busy_share <= 1.0


def test_close_drops_what_has_not_run_and_is_idempotent(device: Device) -> None:
    opened = device.open(tasks(), get_policy("multistream"))
    opened.submit(0, opened.now_ns + 10_000_000, two_steps_inputs(0))
    opened.close()
    opened.close()
    assert list(opened.advance(opened.now_ns + 20_000_000)) == []


def test_a_request_that_has_not_started_can_be_withdrawn(device: Device) -> None:
    with session(device, "sequential") as opened:
        now = opened.now_ns
        first, second = (opened.submit(0, now, two_steps_inputs(i)) for i in range(2))
        (done,) = drain(opened, 1)
        assert done.request == first
        # The next one may be under way by now, but one that waits behind it is not.
        third = opened.submit(0, opened.now_ns, two_steps_inputs(2))
        finished = [*opened.advance(opened.now_ns)]
        assert opened.withdraw(0, third)
        assert not opened.withdraw(0, third)
        assert not opened.withdraw(0, first)
        finished += drain(opened, 1 - len(finished))
        assert [c.request for c in finished] == [second]
