"""The CPU of this machine as a device: real outputs, real times, one request at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator import Mix, Policy, Snapshot, Task, Waiting
from miriam.devices.contract import Arrays, Completion, Usage
from miriam.devices.host.host import Host, HostProgram, HostRequest
from miriam.devices.observe import Observer
from miriam.errors import ExecutionError, UsageError
from miriam.kernels import GpuSpec


class HostDevice:
    """Runs kernels on the CPU; of a policy it only takes the order of the requests (level 0)."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def name(self) -> str:
        """``host``."""
        return "host"

    @property
    def simulated(self) -> bool:
        """Never: its times are those of the CPU."""
        return False

    @property
    def gpu(self) -> GpuSpec:
        """One SM per worker, with the limits of sm_90."""
        return GpuSpec("host", "sm_90", self._host.workers)

    def open(
        self,
        tasks: Sequence[Task],
        policy: Policy,
        observers: Sequence[Observer] = (),
        *,
        timed: bool = False,
    ) -> HostSession:
        """Compile the programs of ``tasks`` and open a session; yields are not timed here."""
        programs = [self._host.load(t.program, t.weights) for t in tasks]
        return HostSession(self.gpu, tasks, policy, programs, observers)


@dataclass(slots=True)
class _Run:
    """A request that has been handed in and not completed."""

    arrival_ns: int
    io: HostRequest


class HostSession:
    """Requests that run to completion one at a time (miriam.devices.contract.Session)."""

    def __init__(
        self,
        gpu: GpuSpec,
        tasks: Sequence[Task],
        policy: Policy,
        programs: Sequence[HostProgram],
        observers: Sequence[Observer],
    ) -> None:
        self._gpu, self._tasks, self._policy = gpu, tuple(tasks), policy
        self._programs, self._observers = programs, observers
        # Filled in as steps run; no policy asks for it before it plans.
        self._step_ns = [[0] * len(t.program.steps) for t in tasks]
        self._requests = [0] * len(tasks)
        self._queue: dict[Waiting, _Run] = {}
        self._last = -1
        self._busy_ns = 0
        self._warp_ns = 0
        self._opened_ns = time.perf_counter_ns()

    @property
    def now_ns(self) -> int:
        """Wall-clock time since the session opened."""
        return time.perf_counter_ns() - self._opened_ns

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        """Hand in a request that arrives at ``arrival_ns``; its number within the task.

        Real time goes on between a look at the clock and this call, so that an arrival before
        now counts as it is: what it waited is part of its latency.
        """
        if not 0 <= task < len(self._tasks):
            raise UsageError("task", f"0 to {len(self._tasks) - 1}", task)
        if arrival_ns < 0:
            raise UsageError("arrival_ns", "not before the session opened, 0", arrival_ns)
        io = self._programs[task].request()
        io.write(inputs or {})
        request = self._requests[task]
        self._requests[task] += 1
        self._queue[Waiting(task, request)] = _Run(arrival_ns, io)
        return request

    def withdraw(self, task: int, request: int) -> bool:
        """Take back a request that has not started; False if it has started or is done."""
        return self._queue.pop(Waiting(task, request), None) is not None

    def advance(self, until_ns: int) -> Sequence[Completion]:
        """Run one request, or wait for an arrival until ``until_ns``; what completed.

        A request that has started is finished even if that takes longer. With nothing handed
        in there is nothing to wait for: it returns at once.
        """
        while self._queue:
            now_ns = self.now_ns
            arrived = sorted(
                (w for w, run in self._queue.items() if run.arrival_ns <= now_ns),
                key=lambda w: self._queue[w].arrival_ns,
            )
            if arrived:
                return [self._run(self._next(arrived))]
            if now_ns >= until_ns:
                break
            next_ns = min(run.arrival_ns for run in self._queue.values())
            time.sleep((min(next_ns, until_ns) - now_ns) / 1e9)
        return []

    def usage(self) -> Usage:
        """Share of the time in which a step ran, and its warps, one block per worker."""
        warps = self._warp_ns / self._busy_ns if self._busy_ns else 0.0
        return Usage(warps / self._gpu.limits.warps, self._busy_ns / max(self.now_ns, 1))

    def close(self) -> None:
        """Drop what has not started."""
        self._queue.clear()

    def _next(self, arrived: Sequence[Waiting]) -> Waiting:
        """The request that the policy starts first."""
        mix = Mix(self._gpu, self._tasks, tuple(tuple(steps) for steps in self._step_ns))
        admitted = self._policy.admit(mix, Snapshot(tuple(arrived), (), self._last))
        if not admitted:
            raise ExecutionError(
                f"policy {self._policy.name} starts none of {len(arrived)} waiting requests "
                "while nothing runs"
            )
        return admitted[0]

    def _run(self, waiting: Waiting) -> Completion:
        run = self._queue.pop(waiting)
        self._last = waiting.task
        start_ns = began_ns = self.now_ns
        for index, step in enumerate(self._tasks[waiting.task].program.steps):
            run.io.run(index)
            ended_ns = self.now_ns
            self._step_ns[waiting.task][index] = ended_ns - began_ns
            self._warp_ns += (ended_ns - began_ns) * -(-step.kernel.threads // 32)
            for observer in self._observers:
                observer.step(waiting.task, waiting.request, index, began_ns, ended_ns)
            began_ns = ended_ns
        self._busy_ns += began_ns - start_ns
        outputs, runs = run.io.outputs(), run.io.runs()
        return Completion(
            waiting.task, waiting.request, run.arrival_ns, start_ns, began_ns, outputs, runs
        )
