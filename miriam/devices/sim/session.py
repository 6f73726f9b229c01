"""A session on the simulated GPU: requests, streams, gates and control words in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf
from typing import TYPE_CHECKING

from miriam.coordinator import (
    UNLIMITED,
    Grant,
    Level,
    Mix,
    Plan,
    Policy,
    ShadedTree,
    Snapshot,
    Waiting,
)
from miriam.devices.contract import Arrays, Completion, Usage
from miriam.devices.observe import LaunchInfo, Observer, heard
from miriam.devices.sim.forms import Forms
from miriam.devices.sim.machine import Machine
from miriam.devices.sim.model import GpuModel
from miriam.devices.sim.residents import BlockSource, Launch
from miriam.devices.sim.steps import ElasticStep, Execute, Ledger, WholeStep
from miriam.devices.sim.words import Words
from miriam.errors import UsageError

if TYPE_CHECKING:
    from miriam.devices.host import HostProgram, HostRequest

AHEAD = -1
"""The stream priority of shards that a grant places ahead; tasks have 0 and more."""


class Run:
    """A request under way: its step, and what it computes on."""

    __slots__ = ("arrival_ns", "began_ns", "io", "request", "start_ns", "step", "task", "whole")

    def __init__(self, task: int, request: int, arrival_ns: int, io: HostRequest | None) -> None:
        self.task = task
        self.request = request
        self.arrival_ns = arrival_ns
        self.io = io
        self.step = 0
        self.began_ns = 0
        self.start_ns: int | None = None


class SimSession:
    """Requests of tasks on one simulated GPU under one policy (miriam.devices.contract.Session)."""

    def __init__(
        self,
        model: GpuModel,
        mix: Mix,
        policy: Policy,
        forms: Sequence[Forms],
        programs: Sequence[HostProgram] | None,
        observers: Sequence[Observer] = (),
    ) -> None:
        """``programs``: the tasks' programs on the host, where outputs are computed."""
        self._model = model
        self._costs = model.costs
        self._mix = mix
        self._policy = policy
        self._forms = forms
        self._programs = programs
        self._observers = observers
        self._passed, self._launched = heard(observers, "passed"), heard(observers, "launched")
        self._plan = policy.plan(mix)
        self._machine = Machine(model, _cuts(self._plan), observers)
        self._words = Words(self._plan, len(mix.tasks))
        self._ledger = Ledger()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = count()
        self._now_ns = self._host_ns = 0
        self._requests = [0] * len(mix.tasks)
        self._waiting: dict[Waiting, Run] = {}
        self._running: list[Run] = []
        self._last = -1
        self._gated: list[Callable[[], bool]] = []
        self._at_border: list[Run] = []
        self._completed: list[Completion] = []

    @property
    def now_ns(self) -> int:
        """Virtual time since the session opened."""
        return self._now_ns

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        """Hand in a request that arrives at ``arrival_ns``; its number within the task."""
        if not 0 <= task < len(self._mix.tasks):
            raise UsageError("task", f"0 to {len(self._mix.tasks) - 1}", task)
        if arrival_ns < self._now_ns:
            raise UsageError("arrival_ns", f"not before now, {self._now_ns}", arrival_ns)
        io = None
        if self._programs is not None:
            io = self._programs[task].request()
            io.write(inputs or {})
        run = Run(task, self._requests[task], arrival_ns, io)
        self._requests[task] += 1
        self._at(arrival_ns, partial(self._arrive, run))
        return run.request

    def withdraw(self, task: int, request: int) -> bool:
        """Take back a request that has arrived and not started; False if it has started."""
        run = self._waiting.pop(Waiting(task, request), None)
        if run is not None and self._words.watched(task):
            self._after(self._costs.control_write_ns, partial(self._write, run, None))
        return run is not None

    def advance(self, until_ns: int) -> Sequence[Completion]:
        """Run until something completes or ``until_ns`` is reached; what completed."""
        heap, machine = self._heap, self._machine
        while not self._completed:
            next_ns = min(heap[0][0] if heap else inf, machine.next_ns())
            if next_ns > until_ns:
                machine.advance(until_ns)
                self._now_ns = until_ns
                break
            self._now_ns = ceil(next_ns)
            machine.advance(self._now_ns)
            while heap and heap[0][0] <= self._now_ns:
                heappop(heap)[2]()
            if self._ledger.freed:
                self._ledger.freed = False
                self._ask_gates()
            machine.settle()
            for passed in self._passed:
                passed(self._now_ns, machine.look)
        completed, self._completed = self._completed, []
        return completed

    def usage(self) -> Usage:
        """What was used so far."""
        occupancy, busy_sms = self._machine.occupancy()
        return Usage(occupancy, busy_sms / self._model.spec.sms)

    def close(self) -> None:
        """Drop what still runs."""
        self._heap.clear()
        self._waiting.clear()

    def _at(self, when_ns: int, event: Callable[[], None]) -> None:
        heappush(self._heap, (when_ns, next(self._sequence), event))

    def _after(self, delay_ns: int, event: Callable[[], None]) -> None:
        self._at(self._now_ns + delay_ns, event)

    # Requests.

    def _arrive(self, run: Run) -> None:
        if self._words.watched(run.task):
            self._after(self._costs.control_write_ns, partial(self._write, run, 0))
        self._waiting[Waiting(run.task, run.request)] = run
        for observer in self._observers:
            observer.arrived(run.task, run.request, self._now_ns)
        self._admit()

    def _admit(self) -> None:
        if not self._waiting:
            return
        running = tuple(r.task for r in self._running)
        snapshot = Snapshot(tuple(self._waiting), running, self._last)
        for waiting in self._policy.admit(self._mix, snapshot):
            run = self._waiting.pop(waiting)
            self._running.append(run)
            self._last = run.task
            # One host thread submits, one graph after the other.
            self._host_ns = max(self._host_ns, self._now_ns) + self._costs.host_launch_ns
            self._at(self._host_ns, partial(self._begin_step, run))
            for observer in self._observers:
                observer.issued(run.task, run.request, self._now_ns, self._host_ns)

    def _complete(self, run: Run) -> None:
        if self._words.watched(run.task):
            self._after(self._costs.control_write_ns, partial(self._write, run, None))
        self._running.remove(run)
        for observer in self._observers:
            observer.finished(run.task, run.request, self._now_ns)
        io = run.io
        self._completed.append(
            Completion(
                run.task,
                run.request,
                run.arrival_ns,
                self._now_ns if run.start_ns is None else run.start_ns,
                self._now_ns,
                io.outputs() if io else None,
                io.runs() if io else None,
            )
        )
        self._admit()
        self._open_border()

    # Control words.

    def _write(self, run: Run, step: int | None) -> None:
        if step is None:
            self._words.clear(run.task, run.request)
        else:
            self._words.set(run.task, run.request, step)
        for observer in self._observers:
            observer.wrote(run.task, run.request, step, self._now_ns)
        self._ask_gates()

    def _ask_gates(self) -> None:
        self._gated = [attempt for attempt in self._gated if not attempt()]

    # Steps.

    def _begin_step(self, run: Run) -> None:
        if run.step in self._plan.tasks[run.task].borders:
            self._at_border.append(run)
            self._open_border()
        else:
            self._start_step(run)

    def _open_border(self) -> None:
        """Let all go on once every running request is at a border."""
        if self._at_border and len(self._at_border) == len(self._running):
            waiting, self._at_border = self._at_border, []
            for run in waiting:
                self._start_step(run)

    def _start_step(self, run: Run) -> None:
        run.began_ns = self._now_ns
        if self._words.changes_at(run.task, run.step):
            self._after(self._costs.control_write_ns, partial(self._write, run, run.step))
        if self._plan.tasks[run.task].steps[run.step].level >= Level.GATE:
            self._after(self._costs.gate_ns, partial(self._gate, run, None))
        else:
            self._whole(run)

    def _gate(self, run: Run, elastic: ElasticStep | None) -> None:
        attempt = partial(self._try, run, elastic)
        if not attempt():
            self._gated.append(self._watched(run, attempt) if self._observers else attempt)

    def _watched(self, run: Run, attempt: Callable[[], bool]) -> Callable[[], bool]:
        """``attempt``, and the observers are told how long it took to succeed."""
        since_ns, step = self._now_ns, run.step

        def watched() -> bool:
            if not attempt():
                return False
            for observer in self._observers:
                observer.held(run.task, run.request, step, since_ns, self._now_ns)
            return True

        return watched

    def _try(self, run: Run, elastic: ElasticStep | None) -> bool:
        """Start the step if its grant allows; False to ask again when a word changes."""
        grant = self._words.grant(run.task, run.step)
        plan = self._plan.tasks[run.task].steps[run.step]
        level = plan.alone if grant is UNLIMITED else plan.level
        free = grant.blocks - self._ledger.held
        kernel = self._mix.tasks[run.task].program.steps[run.step].kernel
        if level < Level.YIELD and elastic is None:
            if free < kernel.blocks:
                return False
            self._whole(run)
            return True
        threads = grant.threads or kernel.threads
        free = min(free, self._fits(run, threads, grant))
        if free < 1:
            return False
        self._elastic(run, elastic or self._new_elastic(run), grant, free)
        return True

    def _whole(self, run: Run) -> None:
        blocks = self._mix.tasks[run.task].program.steps[run.step].kernel.blocks
        ledger = None if self._mix.tasks[run.task].critical else self._ledger
        source = WholeStep(blocks, ledger, self._execute(run), partial(self._end_step, run))
        self._launch(run, 0, source, blocks, None)

    def _new_elastic(self, run: Run) -> ElasticStep:
        kernel = self._mix.tasks[run.task].program.steps[run.step].kernel
        tree = ShadedTree(kernel.blocks, [v.threads for v in kernel.variants])
        grant = partial(self._words.grant, run.task, run.step)
        step = ElasticStep(
            tree,
            grant,
            self._zones,
            self._ledger,
            self._execute(run, elastic=True),
            lambda: self._stop(run, step),
        )
        return step

    def _elastic(self, run: Run, step: ElasticStep, grant: Grant, free: int) -> None:
        kernel = self._mix.tasks[run.task].program.steps[run.step].kernel
        threads = grant.threads or kernel.threads
        shard = step.tree.take(step.tree.remaining, threads)
        launch = self._launch(run, threads, step, min(free, shard.count), grant)
        step.begin(launch, shard, partial(self._fits, run, threads))

    def _fits(self, run: Run, threads: int, grant: Grant) -> int:
        """How many elastic blocks the SMs hold that the task and the grant have in common."""
        everything = (0, self._model.spec.sms)
        mine, granted = self._plan.tasks[run.task].sms or everything, grant.sms or everything
        sms = min(mine[1], granted[1]) - max(mine[0], granted[0])
        return max(0, sms) * self._forms[run.task].get(run.step, threads, elastic=True).per_sm

    def _launch(
        self, run: Run, threads: int, source: BlockSource, blocks: int, grant: Grant | None
    ) -> Launch:
        if run.start_ns is None:
            run.start_ns = self._now_ns
        task = self._plan.tasks[run.task]
        elastic = grant is not None
        form = self._forms[run.task].get(run.step, threads, elastic=elastic)
        zones = self._machine.zones(task.sms)
        if grant is not None:
            zones &= self._zones(grant)
        priority = AHEAD if grant is not None and grant.ahead else task.stream_priority
        order = (priority, next(self._sequence))
        launch = Launch(order, zones, form, source, blocks, persistent=elastic)
        self._machine.enqueue(launch)
        if self._launched:
            where = run.task, run.request, run.step
            info = LaunchInfo(order[1], *where, launch.threads, blocks, elastic)
            for launched in self._launched:
                launched(info, self._now_ns)
        return launch

    def _zones(self, grant: Grant) -> int:
        return self._machine.zones(grant.sms)

    def _execute(self, run: Run, *, elastic: bool = False) -> Execute | None:
        io, step = run.io, run.step
        if io is None:
            return None
        if elastic:
            return partial(io.run_slice, step)
        return lambda first, blocks, _: io.run(step, range(first, first + blocks))

    def _stop(self, run: Run, step: ElasticStep) -> None:
        if step.tree.finished:
            self._end_step(run)
        else:
            self._go_on(run, self._costs.resume_ns, partial(self._gate, run, step))

    def _go_on(self, run: Run, after_ns: int, launch: Callable[[], None]) -> None:
        """Do ``launch`` after what the device takes, or when the host comes to it."""
        if not self._plan.hosted or self._mix.tasks[run.task].critical:
            self._after(after_ns, launch)
            return
        self._host_ns = max(self._host_ns, self._now_ns) + self._costs.host_launch_ns
        self._at(self._host_ns, launch)

    def _end_step(self, run: Run) -> None:
        for observer in self._observers:
            observer.step(run.task, run.request, run.step, run.began_ns, self._now_ns)
        run.step += 1
        if run.step < len(self._mix.tasks[run.task].program.steps):
            self._go_on(run, self._costs.node_ns, partial(self._begin_step, run))
        else:
            self._complete(run)


def _cuts(plan: Plan) -> set[int]:
    """The SM numbers at which any range of SMs in the plan begins or ends."""
    ranges = [t.sms for t in plan.tasks]
    ranges += [g.sms for table in plan.grants.values() for row in table for g in row]
    return {end for sms in ranges if sms for end in sms}
