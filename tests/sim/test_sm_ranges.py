"""Grants of a range of SMs: excluded SMs are left, nothing waits for ever, work regrows after."""

from __future__ import annotations

from miriam.coordinator import Grant, Task
from miriam.devices.contract import Completion
from tests.sim.programs import kernel, program
from tests.sim.test_session import LONG, Fixed, collect, critical, open_recorded

EVERYTHING = 2**31 - 1


def long_normal(blocks: int = 800, in_flight: int = 1) -> Task:
    return Task("n", program("n", [(kernel(blocks), LONG)]), in_flight=in_flight)


def finished(tasks: list[Task], grant: Grant, requests: list[tuple[int, int]]) -> list[Completion]:
    session = open_recorded(tasks, Fixed(((grant,),)))
    for task, at_ns in requests:
        session.submit(task, at_ns)
    return collect(session, len(requests))


def test_work_on_a_part_of_the_sms_takes_the_others_when_the_critical_request_ends() -> None:
    tasks = [critical(steps=12), long_normal()]
    (alone,) = finished(tasks, Grant(EVERYTHING), [(1, 0)])
    # The normal step begins beside the critical request, on one SM of four.
    done = {c.task: c for c in finished(tasks, Grant(EVERYTHING, sms=(3, 4)), [(0, 0), (1, 2_000)])}
    beside_ns = done[0].finish_ns - done[1].start_ns
    rest_ns = done[1].finish_ns - done[0].finish_ns
    alone_ns = alone.finish_ns - alone.start_ns
    # One SM of four did a quarter of the work meanwhile; then all do the rest.
    assert rest_ns < 1.1 * (alone_ns - beside_ns / 4) + 20_000


def test_a_step_on_a_part_of_the_sms_does_not_leave_again_and_again() -> None:
    tasks = [critical(steps=4_000), long_normal()]
    session = open_recorded(tasks, Fixed(((Grant(EVERYTHING, sms=(3, 4)),),)))
    session.submit(0, 0)
    session.submit(1, 20_000)
    (done,) = session.advance(10**9)
    assert done.task == 1
    # 800 blocks of 2,000 ns of issue on one SM, plus a claim each.
    assert done.finish_ns - done.start_ns < 1.25 * 800 * 2_000


def test_blocks_that_wait_for_a_place_take_none_on_excluded_sms() -> None:
    """The blocks of a second request wait all over the GPU when the critical one arrives."""

    def latency_ns(in_flight: int) -> int:
        tasks = [critical(blocks=4, steps=10), long_normal(in_flight=in_flight)]
        requests = [(1, 0)] * in_flight + [(0, 60_000)]
        done = finished(tasks, Grant(EVERYTHING, sms=(3, 4)), requests)
        return next(c.finish_ns - c.arrival_ns for c in done if c.task == 0)

    assert latency_ns(2) <= latency_ns(1) + 500


def test_a_grant_without_any_sm_of_the_task_holds_its_steps() -> None:
    tasks = [critical(steps=12), long_normal(blocks=40)]
    done = finished(tasks, Grant(EVERYTHING, sms=(2, 2)), [(0, 0), (1, 2_000)])
    assert [c.task for c in done] == [0, 1]
    assert done[1].start_ns > done[0].finish_ns
