"""A session on a CUDA GPU: requests are graph launches, and what they ask lies in its memory."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from miriam.coordinator import Mix, Plan, Policy, Snapshot, Waiting
from miriam.devices.arrays import check_arrays
from miriam.devices.contract import Arrays, Completion, Usage
from miriam.devices.cuda.clock import Clock
from miriam.devices.cuda.hosted import HostedStage
from miriam.devices.cuda.lane import Lane
from miriam.devices.cuda.profile import StepProfile
from miriam.devices.cuda.stage import Stage
from miriam.devices.cuda.waits import holds_all
from miriam.devices.observe import Observer
from miriam.errors import DeviceError, UsageError

if TYPE_CHECKING:
    from miriam.devices.cuda.device import CudaDevice

REQUEST_LIMIT_NS = 60_000_000_000
"""A request that takes longer is taken for a hang."""

_NAP_NS = 200_000


@dataclass(slots=True)
class _Run:
    """A request that has been handed in; ``held``: whether it makes all normal work leave."""

    task: int
    request: int
    arrival_ns: int
    inputs: Arrays
    started_ns: int = 0
    held: bool = False
    lane: Lane | None = None


class CudaSession:
    """Requests of tasks on a GPU under one policy (miriam.devices.contract.Session)."""

    def __init__(
        self,
        device: CudaDevice,
        mix: Mix,
        policy: Policy,
        profiles: Sequence[Sequence[StepProfile]],
        observers: Sequence[Observer],
        ladder: Sequence[Plan] = (),
        timed: bool = False,
    ) -> None:
        """``ladder``: plans that ``use`` may change to, of the same tasks and levels.

        ``timed`` as in `Device.open`.
        """
        self._mix, self._policy, self._observers = mix, policy, observers
        self.ladder = tuple(ladder)
        plan = policy.plan(mix)
        stage = HostedStage if plan.hosted else Stage
        self._stage = stage(device, mix, (plan, *ladder), profiles, timed=timed)
        self._free = [list(lanes) for lanes in self._stage.lanes]
        self._requests = [0] * len(mix.tasks)
        self._waiting: dict[Waiting, _Run] = {}
        self._running: list[_Run] = []
        self._last = -1
        self._busy = _Busy(len(mix.tasks))
        self._held: list[tuple[int, int]] = []
        self._left: dict[int, list[int]] = defaultdict(list)
        self._closed = False
        self._holding = self._holders(plan)
        with ExitStack() as undone:
            undone.callback(self._stage.close)
            self._stage.warm_up()
            self._clock = Clock(device.world)
            undone.callback(self._clock.close)
            self._stage.settle(self._clock)
            undone.pop_all()

    @property
    def now_ns(self) -> int:
        """Time since the session opened."""
        return self._clock.now_ns

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        """Hand in a request that arrives at ``arrival_ns``; its number within the task.

        An arrival before now counts as it is: what it waited is part of its latency. The arrays
        are read when the request starts.
        """
        if not 0 <= task < len(self._mix.tasks):
            raise UsageError("task", f"0 to {len(self._mix.tasks) - 1}", task)
        if arrival_ns < 0:
            raise UsageError("arrival_ns", "not before the session opened, 0", arrival_ns)
        program = self._mix.tasks[task].program
        given = inputs or {}
        check_arrays(f"program {program.name} input", program.named("input"), given)
        request = self._requests[task]
        self._requests[task] += 1
        self._waiting[Waiting(task, request)] = _Run(task, request, arrival_ns, given)
        return request

    def withdraw(self, task: int, request: int) -> bool:
        """Take back a request that has not started; False if it has started or is done."""
        return self._waiting.pop(Waiting(task, request), None) is not None

    def advance(self, until_ns: int) -> Sequence[Completion]:
        """Run until something completes or ``until_ns`` is reached; what completed.

        With nothing handed in there is nothing to wait for: it returns at once. DeviceError
        where the GPU fails, or takes longer for a request than ``REQUEST_LIMIT_NS``.
        """
        self._stage.enter()
        while self._waiting or self._running:
            self._admit()
            self._stage.attend()
            ended = self._ended()
            if ended:
                return self._complete(ended)
            now_ns = self.now_ns
            if now_ns >= until_ns:
                break
            if not self._running:
                self._nap(min([until_ns, *(run.arrival_ns for run in self._waiting.values())]))
            elif now_ns - self._running[0].started_ns > REQUEST_LIMIT_NS:
                self._hang(self._running[0])
        return []

    def use(self, plan: Plan) -> None:
        """Let critical requests go by the grants of ``plan``, one of the session's ladder.

        It takes effect word by word with the next control writes of each request.
        """
        self._stage.use(plan)
        self._holding = self._holders(plan)

    def usage(self) -> Usage:
        """Share of the time with a request under way, and the warps of its steps.

        The occupancy is no reading of the hardware's counters: it adds up, over completed
        requests, each step's time alone and the warps that its blocks keep resident then.
        """
        self._stage.enter()
        busy_ns = max(self._busy.total_ns, 1)
        warp_ns = sum(
            done * self._stage.warp_ns[task] for task, done in enumerate(self._busy.completed)
        )
        share = min(1.0, busy_ns / max(self.now_ns, 1))
        untimed = self._stage.in_memory
        yields_ns = () if untimed else self._stage.waits.yields_ns(self._held, self._left)
        return Usage(
            achieved_occupancy=min(1.0, warp_ns / busy_ns),
            busy_share=share,
            yields_ns=yields_ns,
            untimed=untimed and bool(self._held),
            late_gates=self._stage.late_gates,
        )

    def close(self) -> None:
        """Drop what still runs, within the time of its blocks; idempotent."""
        if self._closed:
            return
        self._waiting.clear()
        self._running.clear()
        self._stage.close()
        self._clock.close()
        self._closed = True

    def _admit(self) -> None:
        if not self._waiting:
            return
        now_ns = self.now_ns
        arrived = [w for w, run in self._waiting.items() if run.arrival_ns <= now_ns]
        arrived.sort(key=lambda w: self._waiting[w].arrival_ns)
        if not arrived:
            return
        running = tuple(run.task for run in self._running)
        for waiting in self._policy.admit(self._mix, Snapshot(tuple(arrived), running, self._last)):
            self._start(self._waiting.pop(waiting))

    def _start(self, run: _Run) -> None:
        lane = self._free[run.task][0]
        run.started_ns = self.now_ns
        run.held = run.task in self._holding
        lane.start(run.inputs)
        run.lane = self._free[run.task].pop(0)
        self._running.append(run)
        self._last = run.task
        for observer in self._observers:
            observer.arrived(run.task, run.request, run.arrival_ns)
            observer.issued(run.task, run.request, run.started_ns, run.started_ns)

    def _ended(self) -> list[_Run]:
        """The requests that have ended; if any, all that ended before the latest of them."""
        if not any(_lane(run).has_ended() for run in self._running):
            return []
        return [run for run in self._running if _lane(run).has_ended()]

    def _complete(self, ended: Sequence[_Run]) -> list[Completion]:
        self._clock.keep_up()
        done = sorted((self._completion(run) for run in ended), key=lambda c: c.finish_ns)
        for run in ended:
            self._running.remove(run)
            self._free[run.task].append(_lane(run))
        for completion in done:
            self._busy.add(completion)
            for observer in self._observers:
                observer.finished(completion.task, completion.request, completion.finish_ns)
        return done

    def _completion(self, run: _Run) -> Completion:
        lane = _lane(run)
        start_ns = max(run.arrival_ns, self._clock.of(lane.began))
        finish_ns = max(start_ns, min(self._clock.of(lane.ended), self.now_ns))
        if run.held:
            self._held.append((self._clock.of(lane.announced), finish_ns))
        elif not lane.task.critical:
            self._left[lane.number].append(finish_ns)
        outputs, runs = lane.buffers.outputs(), lane.runs
        return Completion(
            run.task,
            run.request,
            run.arrival_ns,
            start_ns,
            finish_ns,
            outputs,
            runs.result() if runs is not None else None,
        )

    def _holders(self, plan: Plan) -> frozenset[int]:
        """The tasks whose requests make all normal work leave under ``plan``."""
        return frozenset(
            task
            for task in self._mix.critical
            if self._stage.announces(task) and holds_all(plan, self._mix, task)
        )

    def _nap(self, until_ns: int) -> None:
        """Until about ``until_ns``; a nap may last too long, so the last stretch is spun."""
        left_ns = until_ns - self.now_ns
        if left_ns > 2 * _NAP_NS:
            time.sleep((left_ns - _NAP_NS) / 1e9)

    def _hang(self, run: _Run) -> None:
        name = self._mix.tasks[run.task].name
        raise DeviceError(
            f"task {name} request {run.request} has not ended within {REQUEST_LIMIT_NS / 1e9:g} s"
        )


class _Busy:
    """The time in which requests were under way, and how many of each task have completed."""

    def __init__(self, tasks: int) -> None:
        self.total_ns = self._until_ns = 0
        self.completed = [0] * tasks

    def add(self, done: Completion) -> None:
        """Count ``done``; in order of completion."""
        self.total_ns += max(0, done.finish_ns - max(done.start_ns, self._until_ns))
        self._until_ns = max(self._until_ns, done.finish_ns)
        self.completed[done.task] += 1


def _lane(run: _Run) -> Lane:
    assert run.lane is not None  # it has started
    return run.lane
