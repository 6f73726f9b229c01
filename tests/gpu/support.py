"""What the tests on a GPU share: closed loops, a policy that makes every step elastic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from miriam.coordinator import ORDERED, Level, Mix, Plan, Policy, StepPlan, Task, TaskPlan
from miriam.coordinator.gates import closed_tables
from miriam.coordinator.policies import get
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.devices.contract import Arrays, Completion, Device, Session

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class AllElastic:
    """Every normal step in its yield form, and none beside a critical request."""

    name: str = "all-elastic"

    def plan(self, mix: Mix) -> Plan:
        stopped = StepPlan(Level.YIELD, Level.YIELD)
        tasks = [
            TaskPlan(
                mix.stream_priority(i),
                (ORDERED if task.critical else stopped,) * len(task.program.steps),
            )
            for i, task in enumerate(mix.tasks)
        ]
        return Plan(tuple(tasks), closed_tables(mix))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        return admit_in_flight(mix, snapshot)


Inputs = Callable[[int, int], Arrays]
"""The inputs of a task's k-th request."""


class Loop:
    """Closed loops of all tasks on an open session; ``done`` keeps what completed."""

    def __init__(self, session: Session, tasks: Sequence[Task], inputs: Inputs) -> None:
        self.session, self.tasks, self._inputs = session, tasks, inputs
        self.done: list[tuple[int, Completion]] = []
        self._ordinals: dict[tuple[int, int], int] = {}
        self._submitted = [0] * len(tasks)

    def submit(self, task: int, after_ns: int = 0) -> int:
        """The next request of ``task``, ``after_ns`` from now."""
        ordinal = self._submitted[task]
        self._submitted[task] += 1
        arrival_ns = self.session.now_ns + after_ns
        number = self.session.submit(task, arrival_ns, self._inputs(task, ordinal))
        self._ordinals[task, number] = ordinal
        return number

    def run(self, seconds: float, gap_ns: Callable[[int], int] = lambda task: 0) -> None:
        """Keep every task at its number in flight for so long."""
        for task, work in enumerate(self.tasks):
            for _ in range(work.in_flight):
                self.submit(task)
        self.go_on(seconds, gap_ns)

    def go_on(self, seconds: float, gap_ns: Callable[[int], int] = lambda task: 0) -> None:
        """Keep what is in flight going for so long."""
        until_ns = self.session.now_ns + round(seconds * SECOND_NS)
        while self.session.now_ns < until_ns:
            for done in self.session.advance(until_ns):
                self.done.append((self._ordinals[done.task, done.request], done))
                self.submit(done.task, gap_ns(done.task))

    def outputs(self, task: int) -> list[tuple[int, bytes]]:
        """Ordinal and output bytes of every request of ``task`` that completed."""
        return [(k, as_bytes(done)) for k, done in self.done if done.task == task]


def as_bytes(done: Completion) -> bytes:
    """The outputs of a request, one after the other."""
    assert done.outputs is not None
    return b"".join(array.tobytes() for array in done.outputs.values())


@contextmanager
def opened(device: Device, tasks: Sequence[Task], policy: Policy) -> Iterator[Session]:
    """A session that is closed in the end."""
    session = device.open(tasks, policy)
    try:
        yield session
    finally:
        session.close()


def alone(device: Device, task: Task, inputs: Arrays) -> bytes:
    """The outputs of one request of ``task`` with original kernels and nothing beside."""
    single = Task("alone", task.program, weights=task.weights)
    with opened(device, [single], get("multistream")) as session:
        session.submit(0, session.now_ns, inputs)
        (done,) = session.advance(session.now_ns + 60 * SECOND_NS)
        return as_bytes(done)
