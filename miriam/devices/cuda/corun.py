"""Measures normal work beside a critical request, segment by segment (`miriam.coordinator.corun`).

The critical request runs once as a graph, while the steps of a normal unit run again and again in
another stream with less priority. So what caches hold and what bandwidth is left is as it will be:
steps that are repeated alone find their weights in L2. On a branch beside the chain of critical
kernels, each border of a segment records an event and copies the counters that the normal blocks
claim from to the host; a copy engine waits for no kernel. In the end a fill closes the grant, and
what is left of the normal graph falls through.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator import Grant
from miriam.coordinator.corun import CoRun, Trial
from miriam.coordinator.task import Steps
from miriam.devices.cuda.buffers import Buffers, Weights
from miriam.devices.cuda.capture import Fork, Graph, recording
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.kernels import Form, Kernels
from miriam.devices.cuda.l2 import SetAside, look_through
from miriam.devices.cuda.lane import EXTERNAL
from miriam.devices.cuda.memory import Memory, upload
from miriam.devices.cuda.patience import drain, wait_for
from miriam.devices.cuda.profile import StepProfile, resident_blocks
from miriam.devices.cuda.words import OPEN, SM_WORDS, Row, sm_set
from miriam.devices.cuda.world import World
from miriam.elastic.launch import Control
from miriam.kernels import Program, Step

SLOWEST = 2.5
"""Beside others a critical request is expected to take at most so many times as long."""

LEAD_NS = 50_000
"""So much more normal work there is, for the time until the host's launch has come."""

RUNS = 3

BLOCKS = 2
"""How far a normal step has come is seen over at least so many of its blocks, one by one."""

Profiles = tuple[Sequence[StepProfile], Sequence[StepProfile]]
Times = NDArray[np.float64]

_Alike = tuple[tuple[object, ...], ...]


class CoRunner:
    """Measures in one world; what is known of equal steps is not measured again."""

    def __init__(self, world: World, kernels: Kernels, where: Function) -> None:
        """``where``: the kernel miriam_where, by which SMs are found."""
        self._world, self._kernels, self._where = world, kernels, where
        # By the critical steps and their ranges, and of those by the normal steps and their grant.
        self._known: dict[
            tuple[_Alike, tuple[Steps, ...]],
            dict[tuple[_Alike, Grant], dict[Steps, tuple[float, float]]],
        ] = {}

    def measure(
        self, programs: tuple[Program, Program], profiles: Profiles, trials: Sequence[Trial]
    ) -> tuple[CoRun, ...]:
        """``trials`` of a critical and a normal program, whose kernels are loaded.

        The critical ranges of all trials together are the segments of a request, in order.
        """
        ranges = tuple(sorted({trial.critical for trial in trials}))
        asked = dict.fromkeys((trial.normal, trial.grant) for trial in trials)
        known = self._known.setdefault((_alike(programs[0].steps), ranges), {})
        keys = {
            (unit, grant): (_alike(programs[1].steps[slice(*unit)]), grant) for unit, grant in asked
        }
        missing = {key: pair for pair, key in keys.items() if key not in known}
        if missing:
            units = {unit for unit, _ in missing.values()}
            bench = _Bench(self._world, self._kernels, programs, profiles, ranges, units)
            with closing(bench):
                for sms in {grant.sms for _, grant in missing.values() if grant.sms}:
                    bench.confine(sms, self._world.ids_of(*sms, self._where))
                for key, (unit, grant) in missing.items():
                    known[key] = bench.run(unit, grant)
        found = {pair: known[key] for pair, key in keys.items()}
        return tuple(CoRun(t, *found[t.normal, t.grant][t.critical]) for t in trials)


def _alike(steps: Sequence[Step]) -> _Alike:
    return tuple(step.alike for step in steps)


@dataclass(frozen=True, slots=True)
class _Normal:
    """The steps of a unit, recorded again and again.

    ``began``: an event that the graph records. Of each launch, ``blocks`` and how many ns of its
    step's time alone one of them stands for. ``longest_ns``: how long a block of them runs, alone.
    """

    graph: Graph
    began: Any
    blocks: NDArray[np.int64]
    block_ns: Times
    longest_ns: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a run of the critical graph showed: times of the segments, and claims at the borders."""

    taken_ns: Times
    claimed: NDArray[np.uint32]


class _Bench:
    """What two programs are measured on: buffers whose contents do not matter, graphs, words."""

    def __init__(
        self,
        world: World,
        kernels: Kernels,
        programs: tuple[Program, Program],
        profiles: Profiles,
        ranges: Sequence[Steps],
        units: Collection[Steps],
    ) -> None:
        """``ranges``: the segments. ``units``: all that will be run beside them."""
        self._world, self._kernels = world, kernels
        self._programs, self._profiles, self._ranges = programs, profiles, ranges
        world.enter()
        self._owned = ExitStack()
        try:
            self._make(units)
        except BaseException:
            self._owned.close()
            raise

    def _make(self, units: Collection[Steps]) -> None:
        world, programs, ranges, owned = self._world, self._programs, self._ranges, self._owned
        self._memory = Memory()
        owned.callback(self._memory.free)
        weights = [Weights(program, None, self._memory) for program in programs]
        self._buffers = [
            Buffers(program, of.addresses, self._memory)
            for program, of in zip(programs, weights, strict=True)
        ]
        self._urgent, self._other = world.stream(-(2**31), owned), world.stream(0, owned)
        l2 = SetAside(world.gpu.handle)
        owned.callback(l2.give_back)
        look_through(l2.window(weights[0].address, weights[0].bytes), self._urgent)
        self._side = world.stream(-(2**31), owned)
        self._quota = self._memory.device(4)
        self._sms = self._memory.device(4 * SM_WORDS)
        self._sets: dict[tuple[int, int] | None, Row] = {None: np.full(SM_WORDS, OPEN, np.uint32)}
        self._critical_ns = sum(profile.original_ns for profile in self._profiles[0])
        self._words = max(self._repeats(unit) * len(range(*unit)) for unit in units)
        self._counters = self._memory.device(4 * self._words)
        self._events = [event(owned) for _ in range(len(ranges) + 1)]
        self._address, view = self._memory.host(4 * self._words * len(self._events))
        self._claims = view.view(np.uint32).reshape(len(self._events), self._words)
        self._critical = self._record_critical()
        self._request = self._record_request()
        self._normals: dict[tuple[Steps, int], _Normal] = {}
        self._alone_ns = np.median([self._after() for _ in range(2 * RUNS + 1)], axis=0)

    def confine(self, sms: tuple[int, int], ids: Sequence[int]) -> None:
        """The hardware's numbers of the SMs that grants call ``sms``."""
        self._sets[sms] = sm_set(ids)

    def run(self, unit: Steps, grant: Grant) -> dict[Steps, tuple[float, float]]:
        """Slow-down and progress (`CoRun`) of each segment beside ``unit`` under ``grant``."""
        normal = self._normal(unit, grant)
        seen = [self._beside(normal, grant) for _ in range(RUNS)]
        slowdown = np.median([s.taken_ns for s in seen], axis=0) / self._alone_ns
        progress = np.mean([_progress(s, normal) for s in seen], axis=0)
        found = zip(slowdown.tolist(), progress.tolist(), strict=True)
        return dict(zip(self._ranges, found, strict=True))

    def close(self) -> None:
        """Give back what was made."""
        # After an error the normal graph may still run: without a grant it falls through.
        ask(driver.cuMemsetD32Async(self._quota, 0, 1, self._side))
        for stream in (self._side, self._urgent, self._other):
            drain(stream)
        self._owned.close()

    def _repeats(self, unit: Steps) -> int:
        takes_ns = max(1, sum(profile.original_ns for profile in self._profiles[1][slice(*unit)]))
        return (round(SLOWEST * self._critical_ns) + LEAD_NS) // takes_ns + 1

    def _after(self) -> Times:
        """The segments' times with nothing beside, on caches that a normal request has used."""
        self._request.launch(self._other)
        drain(self._other)
        return self._look().taken_ns

    def _beside(self, normal: _Normal, grant: Grant) -> _Seen:
        self._start(normal, grant)
        seen = self._look()
        drain(self._other)
        return seen

    def _start(self, normal: _Normal, grant: Grant) -> None:
        ask(driver.cuMemsetD32Async(self._quota, min(grant.blocks, OPEN), 1, self._urgent))
        ask(driver.cuMemsetD32Async(self._counters, 0, self._words, self._urgent))
        drain(self._urgent)
        upload(self._sms, self._sets[grant.sms])
        normal.graph.launch(self._other)
        wait_for(normal.began)

    def _look(self) -> _Seen:
        self._critical.launch(self._urgent)
        drain(self._urgent)
        elapsed = [ask(driver.cuEventElapsedTime(*pair)) for pair in pairwise(self._events)]
        return _Seen(np.array(elapsed) * 1e6, self._claims.copy())

    def _record_request(self) -> Graph:
        with recording(self._other) as graph:
            self._owned.callback(graph.destroy)
            for step in self._programs[1].steps:
                arguments = self._buffers[1].arguments(step)
                self._kernels.original(step).submit(self._other, step, arguments)
        return graph

    def _record_critical(self) -> Graph:
        stops = {stop: place for place, (_, stop) in enumerate(self._ranges, 1)}
        with recording(self._urgent) as graph:
            self._owned.callback(graph.destroy)
            fork = Fork(self._urgent, self._side, self._owned)
            fork.catch_up()
            self._mark(0)
            for number, step in enumerate(self._programs[0].steps, 1):
                arguments = self._buffers[0].arguments(step)
                self._kernels.original(step).submit(self._urgent, step, arguments)
                if number in stops:
                    fork.catch_up()
                    self._mark(stops[number])
            ask(driver.cuMemsetD32Async(self._quota, 0, 1, self._side))
            fork.join()
        graph.upload(self._urgent)
        return graph

    def _mark(self, border: int) -> None:
        size = 4 * self._words
        ask(driver.cuEventRecordWithFlags(self._events[border], self._side, EXTERNAL))
        at = self._address + size * border
        ask(driver.cuMemcpyDtoHAsync(at, self._counters, size, self._side))

    def _normal(self, unit: Steps, grant: Grant) -> _Normal:
        kernel = self._programs[1].steps[unit[0]].kernel
        folded = grant.threads if 0 < grant.threads < kernel.threads else 0
        if (unit, folded) not in self._normals:
            self._normals[unit, folded] = self._record_normal(unit, folded)
        return self._normals[unit, folded]

    def _record_normal(self, unit: Steps, folded: int) -> _Normal:
        """``folded``: threads of the form, 0 for as many as the original's."""
        steps = self._programs[1].steps[slice(*unit)]
        profiles = self._profiles[1][slice(*unit)]
        forms = [
            profile.forms[folded or step.kernel.threads]
            for step, profile in zip(steps, profiles, strict=True)
        ]
        repeats = self._repeats(unit)
        began = event(self._owned)
        with recording(self._other) as graph:
            self._owned.callback(graph.destroy)
            ask(driver.cuEventRecordWithFlags(began, self._other, EXTERNAL))
            for repeat in range(repeats):
                for place, (step, form) in enumerate(zip(steps, forms, strict=True)):
                    self._submit(step, form, repeat * len(steps) + place)
        blocks = np.array([step.kernel.blocks for step in steps], np.int64)
        alone_ns = np.array([profile.original_ns for profile in profiles], np.float64)
        at_once = [self._at_once(step, form) for step, form in zip(steps, forms, strict=True)]
        longest_ns = float(max(alone_ns / np.ceil(blocks / at_once)))
        tiled = np.tile(blocks, repeats), np.tile(alone_ns / blocks, repeats)
        return _Normal(graph, began, *tiled, longest_ns)

    def _submit(self, step: Step, form: Form, number: int) -> None:
        control = Control(self._counters + 4 * number, quota=self._quota, sms=self._sms)
        arguments = self._buffers[1].arguments(step)
        blocks = self._at_once(step, form)
        form.launch(self._other, step.kernel, arguments, blocks, control)

    def _at_once(self, step: Step, form: Form) -> int:
        full = resident_blocks(form.function, form.threads, step.kernel, self._world)
        return min(step.kernel.blocks, full)


def _progress(seen: _Seen, normal: _Normal) -> Times:
    """Of each segment: the normal work done in it, in ns of its time alone / the segment's time."""
    claimed = np.minimum(seen.claimed[:, : normal.blocks.size], normal.blocks)
    return rates(claimed @ normal.block_ns, seen.taken_ns, BLOCKS * normal.longest_ns)


def rates(done_ns: Times, taken_ns: Times, least_ns: float) -> Times:
    """By how much ``done_ns`` grows per ns, of each segment.

    ``done_ns``: at each of the segments' borders. ``taken_ns``: by each segment. It grows in steps,
    so a segment is looked at together with its neighbours until they took ``least_ns``.
    """
    at_ns = np.concatenate([[0.0], np.cumsum(taken_ns)])
    last, found = len(taken_ns), []
    for begin in range(last):
        end = begin + 1
        while at_ns[end] - at_ns[begin] < least_ns and end - begin < last:
            begin, end = max(0, begin - 1), min(last, end + 1)
        found.append((done_ns[end] - done_ns[begin]) / (at_ns[end] - at_ns[begin]))
    return np.array(found)
