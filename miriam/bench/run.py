"""The driver: feeds the arrivals of a window to a session and collects what completes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from miriam.bench.arrivals import Arrivals
from miriam.coordinator import Policy, Task
from miriam.devices.contract import Arrays, Completion, Device, Session, Usage
from miriam.devices.observe import Observer

Inputs = Callable[[int], Arrays | None]
Watch = Callable[[Completion, int], None]


@dataclass(frozen=True, slots=True)
class Load:
    """A task and what it is asked for.

    ``times_ns``: the arrivals known beforehand, ``arrivals`` says which follow a completion.
    ``inputs``: the input arrays of the task's k-th request, None where nothing is computed.
    """

    task: Task
    arrivals: Arrivals
    times_ns: tuple[int, ...]
    inputs: Inputs = lambda ordinal: None


@dataclass(frozen=True, slots=True)
class Record:
    """What completed in the window, per task in order of completion, without the outputs.

    ``window_ns`` is shorter than asked for where enough had completed before.
    """

    window_ns: int
    completions: tuple[tuple[Completion, ...], ...]
    usage: Usage


def run_window(
    device: Device,
    policy: Policy,
    loads: Sequence[Load],
    window_ns: int,
    watch: Watch = lambda done, ordinal: None,
    observers: Sequence[Observer] = (),
    enough: int | None = None,
) -> Record:
    """Run ``loads`` under ``policy`` until ``window_ns`` of the device's time have passed.

    Where ``enough`` is given, it ends when so many requests have completed, if that is earlier.

    ``watch`` sees each completion whole, with its ordinal: it was the task's k-th request. What
    is unfinished at the end does not count.
    """
    session = device.open([load.task for load in loads], policy, observers)
    try:
        return _Window(session, loads, window_ns, watch, enough).run()
    finally:
        session.close()


class _Window:
    """The requests of one session."""

    def __init__(
        self,
        session: Session,
        loads: Sequence[Load],
        window_ns: int,
        watch: Watch,
        enough: int | None,
    ) -> None:
        self._session, self._loads = session, loads
        self._window_ns, self._watch = window_ns, watch
        self._left = enough
        self._submitted = [0] * len(loads)
        self._ordinals: dict[tuple[int, int], int] = {}
        self._completions: list[list[Completion]] = [[] for _ in loads]

    def run(self) -> Record:
        for task, load in enumerate(self._loads):
            for time in load.times_ns:
                self._submit(task, time)
        while self._session.now_ns < self._window_ns and self._left != 0:
            for done in self._session.advance(self._window_ns):
                self._completed(done)
        completions = tuple(tuple(done) for done in self._completions)
        window_ns = min(self._window_ns, self._session.now_ns)
        return Record(window_ns, completions, self._session.usage())

    def _submit(self, task: int, arrival_ns: int) -> None:
        ordinal = self._submitted[task]
        self._submitted[task] += 1
        inputs = self._loads[task].inputs(ordinal)
        request = self._session.submit(task, arrival_ns, inputs)
        self._ordinals[task, request] = ordinal

    def _completed(self, done: Completion) -> None:
        if done.finish_ns > self._window_ns:
            return
        if self._left:
            self._left -= 1
        self._watch(done, self._ordinals.pop((done.task, done.request)))
        self._completions[done.task].append(replace(done, outputs=None, runs=None))
        following = self._loads[done.task].arrivals.following(done.finish_ns)
        if following is not None and following < self._window_ns:
            self._submit(done.task, max(following, self._session.now_ns))
