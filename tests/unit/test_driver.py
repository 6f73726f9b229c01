"""The driver: deadlines, bounded queues and weights, on a device that takes a fixed time."""

from __future__ import annotations

from bench_fakes import FakeSession, tiny_program

from miriam.bench import Closed, Trace
from miriam.coordinator import Task
from miriam.coordinator.shares import next_in_share
from miriam.runtime import Driver, Fate, Offer, Record, Rules

MS = 1_000_000


def offer(name: str = "t", times_ms: tuple[int, ...] = (), deadline_ms: int | None = None) -> Offer:
    deadline_ns = None if deadline_ms is None else deadline_ms * MS
    task = Task(name, tiny_program(name), deadline_ns=deadline_ns)
    times_ns = tuple(time * MS for time in times_ms)
    return Offer(task, Trace(times_ns), times_ns)


def closed(name: str, weight: float, alone_ms: int, in_flight: int = 1) -> Offer:
    task = Task(name, tiny_program(name), in_flight=in_flight)
    return Offer(task, Closed(in_flight), (0,) * in_flight, turn_ns=alone_ms * MS / weight)


def drive(offers: list[Offer], service_ms: list[int], rules: Rules, window_ms: int) -> Record:
    return Driver(FakeSession([t * MS for t in service_ms]), offers, rules).run(window_ms * MS)


def fates(record: Record, task: int = 0) -> list[str]:
    return [request.fate.value for request in record.requests[task]]


def test_every_request_is_kept_with_its_times() -> None:
    record = drive([offer(times_ms=(0, 1, 20))], [10], Rules(), 25)
    first, second, third = record.requests[0]
    assert (first.start_ns, first.end_ns) == (0, 10 * MS)
    assert (second.arrival_ns, second.start_ns, second.end_ns) == (MS, 10 * MS, 20 * MS)
    assert (third.fate, third.end_ns) == (Fate.UNFINISHED, None)


def test_it_ends_when_enough_is_done_and_says_when_that_was() -> None:
    session = FakeSession([10 * MS])
    record = Driver(session, [closed("t", 1, 10)]).run(1_000 * MS, enough=3)
    assert [r.end_ns for r in record.served[0]] == [10 * MS, 20 * MS, 30 * MS]
    assert record.window_ns == 30 * MS


def test_served_are_the_times_of_what_was_done() -> None:
    record = drive([offer(times_ms=(0, 1, 2), deadline_ms=12)], [10], Rules(drop_late=True), 100)
    first, second = record.served[0]
    assert (first.latency_ns, first.service_ns) == (10 * MS, 10 * MS)
    assert (second.latency_ns, second.service_ns) == (19 * MS, 10 * MS)


def test_what_arrives_to_a_full_queue_is_refused() -> None:
    record = drive([offer(times_ms=(0, 1, 2, 3, 11))], [10], Rules(queue=1), 100)
    assert fates(record) == ["done", "done", "refused", "refused", "done"]
    assert record.requests[0][2].end_ns == 2 * MS


def test_late_requests_are_dropped_before_they_start_or_run() -> None:
    asked = [offer(times_ms=(0, 1, 2), deadline_ms=12)]
    dropped = drive(asked, [10], Rules(drop_late=True), 100)
    assert fates(dropped) == ["done", "done", "dropped"]
    # The second has started before its deadline and is finished after it.
    assert dropped.requests[0][1].end_ns == 20 * MS
    assert dropped.requests[0][2].end_ns == 14 * MS
    assert fates(drive(asked, [10], Rules(), 100)) == ["done"] * 3


def test_a_dropped_request_makes_room_in_the_queue() -> None:
    asked = [offer(times_ms=(0, 1, 14), deadline_ms=5)]
    record = drive(asked, [20], Rules(drop_late=True, queue=1), 100)
    assert fates(record) == ["done", "dropped", "dropped"]


def test_a_closed_loop_goes_on_after_a_drop() -> None:
    task = Task("t", tiny_program("t"), deadline_ns=15 * MS, in_flight=2)
    asked = [Offer(task, Closed(2), (0, 0)), offer("other", times_ms=(0,))]
    record = drive(asked, [10, 10], Rules(drop_late=True), 100)
    assert "dropped" in fates(record)
    assert len(record.requests[0]) > 5


def test_weights_are_shares_of_time_alone() -> None:
    # The second task's requests take twice as long: three times the weight, 3 : 2 * 1 requests.
    offers = [closed("a", 3, 1, in_flight=2), closed("b", 1, 2)]
    record = drive(offers, [1, 2], Rules(), 1_000)
    a, b = (fates(record, task).count("done") for task in (0, 1))
    assert abs(a * 1 / (b * 2) - 3) < 0.1


def test_a_task_is_not_owed_what_it_did_not_ask_for() -> None:
    late = offer("late", times_ms=tuple(range(500, 1_000)))
    late = Offer(late.task, late.arrivals, late.times_ns, turn_ns=1.0 * MS)
    record = drive([closed("a", 1, 1), late], [1, 1], Rules(), 1_000)
    in_second_half = sum(
        r.fate is Fate.DONE and r.arrival_ns >= 500 * MS for r in record.requests[0]
    )
    assert 240 <= in_second_half <= 260


def test_only_who_is_not_ahead_starts() -> None:
    assert next_in_share({0: 2.0, 1: 1.0, 2: 1.0}, {0, 1, 2}) == 1
    assert next_in_share({0: 2.0, 1: 1.0}, {0}) is None
    assert next_in_share({0: 2.0, 1: 2.0}, {1}) == 1
    assert next_in_share({}, set()) is None
