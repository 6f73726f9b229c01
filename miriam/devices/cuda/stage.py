"""What the requests of a session run on: lanes with their graphs, and the control words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from miriam.coordinator import Mix, Plan
from miriam.devices.cuda.buffers import Buffers, Runs, Staging, Weights
from miriam.devices.cuda.clock import Clock
from miriam.devices.cuda.code import Original
from miriam.devices.cuda.driver import CONNECTIONS, ask, driver
from miriam.devices.cuda.graphs import (
    Borders,
    Controls,
    Place,
    record_critical,
    record_normal,
)
from miriam.devices.cuda.l2 import SetAside, look_through
from miriam.devices.cuda.lane import Announcement, Lane
from miriam.devices.cuda.memory import Memory, upload
from miriam.devices.cuda.patience import drain
from miriam.devices.cuda.profile import StepProfile, resident_blocks
from miriam.devices.cuda.rows import RowWrites, Table
from miriam.devices.cuda.waits import Waits
from miriam.devices.cuda.words import Layout
from miriam.devices.cuda.world import World
from miriam.errors import DeviceError, MissingCapabilityError, UsageError

if TYPE_CHECKING:
    from miriam.devices.cuda.device import CudaDevice

GATE_LIMIT_NS = 10_000_000_000
"""A gate that was shut for so long opens, and is counted as late."""

CLOSE_LIMIT_S = 30.0

SMS_PER_GATE = 16
"""With one normal lane per so many SMs, and more, gates are waits in memory: then the places that
waiting kernels hold cost the critical ones more than slower gates cost the normal ones."""

STREAMS_BESIDE = 4
"""Streams of a session that are no lane's, at most. A wait in memory blocks its hardware queue, so
no other stream of the session may share it, nor the branch of a critical lane's graph."""

STAGED_INPUTS = 8
"""How many arrays that nobody can change are kept ready to be copied, per task."""


class Stage:
    """All lanes of all tasks of a mix; made before the first request starts."""

    lane_type: type[Lane] = Lane

    def __init__(
        self,
        device: CudaDevice,
        mix: Mix,
        plans: Sequence[Plan],
        profiles: Sequence[Sequence[StepProfile]],
        *,
        timed: bool = False,
    ) -> None:
        """``plans``: the first one counts, the others can be used later.

        ``timed``: gates are kernels in any case, as these write down when they were reached.
        """
        plan, self._timed, self._plans = plans[0], timed, plans
        self._device, self._mix, self._plan, self._profiles = device, mix, plan, profiles
        self._owned = ExitStack()
        try:
            self._make()
        except BaseException:
            self._give_back()
            raise

    def _make(self) -> None:
        """Everything; each piece says to ``_owned`` how it is given back."""
        mix, owned = self._mix, self._owned
        for task in range(len(mix.tasks)):
            self._borrow(task)
        self.enter()
        self._worlds = self._placed()
        self._memory = Memory()
        owned.callback(self._memory.free)
        self._layout = Layout(mix, self._plans)
        self._watched = sorted({critical for critical, _ in self._plan.grants})
        self._side = self._device.world.stream(-(2**31), owned)
        self._sides: dict[tuple[World, int], Any] = {}
        slots = [(t, i) for t in self._watched for i in range(mix.tasks[t].in_flight)]
        self._slots = {slot: number for number, slot in enumerate(slots)}
        self.waits = Waits(self._memory)
        self._controls = self._make_controls(max(1, len(slots)))
        self._numbers = count()
        self._tables = {task: self._table(task, self._plans) for task in self._watched}
        self._l2 = SetAside(self._device.world.gpu.handle)
        owned.callback(self._l2.give_back)
        self.lanes = [self._lanes(task) for task in range(len(mix.tasks))]
        self.warp_ns = [self._warp_ns(task) for task in range(len(mix.tasks))]
        # Copies and fills of this thread's legacy stream, for which our streams do not wait.
        drain(driver.CUstream(0))

    def _give_back(self) -> None:
        """What was made, in reverse; nothing of it may be running."""
        # No context that is destroyed may be this thread's.
        self.enter()
        self._owned.close()

    def enter(self) -> None:
        """Make the device's context the calling thread's."""
        self._device.world.enter()

    def warm_up(self) -> None:
        """Run each lane once, one after the other, so that no first request is slower."""
        for lane in (lane for lanes in self.lanes for lane in lanes):
            lane.world.enter()
            lane.rerun()
            # All of it: a graph goes on for a moment after its outputs are there.
            drain(lane.stream, CLOSE_LIMIT_S)
        self.enter()
        ask(driver.cuMemsetD32(self.waits.address, 0, 2))

    def attend(self) -> None:
        """What the host has to do while requests run: nothing, it all lies on the device."""

    def settle(self, clock: Clock) -> None:
        """Put what gates write down on the scale of ``clock``."""
        self.waits.settle(clock, self._device.controls.function("miriam_now"), self._side)

    def announces(self, task: int) -> bool:
        """Whether requests of ``task`` write control words."""
        return task in self._watched

    @property
    def in_memory(self) -> bool:
        """Whether gates are waits in memory, which write down nothing."""
        return self._controls.in_memory

    @property
    def late_gates(self) -> int:
        """How many gates opened because their time was up."""
        return int(self._late[0])

    def close(self) -> None:
        """Let everything come to its end, and give back what it ran on.

        DeviceError where that takes longer than ``CLOSE_LIMIT_S``.
        """
        self.enter()
        # Kernels that wait look at a word of the host's memory, which needs no stream: one might
        # wait behind them. Waits in memory end as the critical requests do, which nobody holds.
        self._abort[0] = 1
        lanes = [lane for lanes in self.lanes for lane in lanes]
        until = time.perf_counter() + CLOSE_LIMIT_S
        while not all(lane.is_idle() for lane in lanes):
            if time.perf_counter() > until:
                raise DeviceError(f"requests still run {CLOSE_LIMIT_S:g} s after all gates opened")
        self._give_back()

    def _make_controls(self, slots: int) -> Controls:
        idle = self._layout.idle()
        rows = self._memory.device(idle.nbytes * slots)
        upload(rows, np.tile(idle, slots))
        # In the host's memory: neither needs a copy, which would need the GPU's time.
        abort, abort_view = self._memory.host(4)
        late, late_view = self._memory.host(4)
        self._abort, self._late = abort_view.view(np.uint32), late_view.view(np.uint32)
        module = self._device.controls
        lanes = sum(task.in_flight for task in self._mix.tasks)
        waiting = sum(self._mix.tasks[task].in_flight for task in self._mix.normal)
        costly = waiting * SMS_PER_GATE >= self._device.world.sms
        bordered = any(task.borders for task in self._plan.tasks)
        grants = [table for plan in self._plans for table in plan.grants.values()]
        return Controls(
            gate=module.function("miriam_gate"),
            again=module.function("miriam_again"),
            rows=rows,
            width=self._layout.width,
            slots=slots,
            abort=abort,
            late=late,
            limit_ns=GATE_LIMIT_NS,
            confined=any(g.sms for table in grants for row in table for g in row),
            waits=self.waits.address,
            border=module.function("miriam_border") if bordered else None,
            borders=self._memory.device(4 + 8 * lanes) if bordered else 0,
            lanes=lanes,
            in_memory=costly and not self._timed and lanes + slots + STREAMS_BESIDE <= CONNECTIONS,
        )

    def _placed(self) -> Sequence[World]:
        """The world of each task; the session's for all where their own may not overlap."""
        whole = self._device.world
        ranges = [task.sms for task in self._plan.tasks]
        if not whole.may_run_at_once(ranges):
            return [whole] * len(ranges)
        parts = {
            sms: self._owned.enter_context(closing(whole.part(*sms))) if sms else whole
            for sms in set(ranges)
        }
        return [parts[sms] for sms in ranges]

    def _lanes(self, task: int) -> list[Lane]:
        work, plan, world = self._mix.tasks[task], self._plan.tasks[task], self._worlds[task]
        captured = self._device.captured_as(work.program)
        self.enter()
        weights = Weights(work.program, work.weights, self._memory)
        kept = self._l2.window(weights.address, weights.bytes) if work.critical else None
        # The most urgent tasks have the highest number before 0; equal ones share it.
        least = max(p.stream_priority for p in self._plan.tasks)
        table = self._tables.get(task)
        largest = max((b.bytes for b in work.program.named("input")), default=0)
        staging = Staging(STAGED_INPUTS, largest, self._memory)
        lanes = []
        for request in range(work.in_flight):
            known = weights.addresses if captured is None else captured.addresses(request)
            buffers = Buffers(work.program, known, self._memory, staging)
            priority = plan.stream_priority - least
            side = self._side_stream(world, priority)
            lane = self.lane_type(work, world, priority, buffers, side, next(self._numbers))
            lanes.append(lane)
            self._owned.callback(lane.close)
            look_through(kept, lane.stream)
            if work.critical:
                self._record_critical(lane, task, request, table)
            else:
                self._record_normal(lane, task, request)
        return lanes

    def _side_stream(self, world: World, priority: int) -> Any:
        """The stream on which branches are recorded: a stream each would use up the connections."""
        if (world, priority) not in self._sides:
            world.enter()
            self._sides[world, priority] = world.stream(priority, self._owned)
        return self._sides[world, priority]

    def _borrow(self, task: int) -> None:
        """Take the memory of a captured program; nothing for one whose kernels have source."""
        work = self._mix.tasks[task]
        captured = self._device.captured_as(work.program)
        if captured is None:
            return
        if self._plan.tasks[task].sms:
            raise MissingCapabilityError(
                f"task {work.name}",
                "captured kernels keep the SMs that they were captured on",
                "use a policy that gives no SMs to tasks, or a device cuda:<GPU>:<SMs>",
            )
        captured.lend(self, work.name, work.in_flight)
        self._owned.callback(captured.give_back)

    def _originals(self, task: int, request: int) -> Sequence[Original]:
        program = self._mix.tasks[task].program
        captured = self._device.captured_as(program)
        if captured is not None:
            return captured.originals(request)
        return self._device.functions(program)

    def use(self, plan: Plan) -> None:
        """Let requests go by the grants of ``plan`` from their next control write on.

        Every word is an old grant or a new one; a request under way may meet both. UsageError for
        a plan that the stage was not made for.
        """
        if plan not in self._plans:
            raise UsageError("plan", "one that the session was opened with", plan.tasks)
        for task, table in self._tables.items():
            rows = self._layout.rows(plan, task, self._sets(plan, task))
            for line, step in enumerate(table.steps):
                table.lines[line] = rows[step]

    def _sets(self, plan: Plan, task: int) -> dict[tuple[int, int], Sequence[int]]:
        """The hardware's SM numbers of each range of SMs beside the critical ``task``."""
        where = self._device.controls.function("miriam_where")
        ranges = {
            g.sms
            for (critical, _), table in plan.grants.items()
            if critical == task
            for row in table
            for g in row
            if g.sms
        }
        return {r: self._device.world.ids_of(*r, where) for r in ranges}

    def _table(self, task: int, plans: Sequence[Plan]) -> Table:
        """The rows of ``task`` before the steps at which they change under any of ``plans``."""
        layout = self._layout
        found = [layout.rows(plan, task, self._sets(plan, task)) for plan in plans]
        changes = [
            i
            for i in range(len(found[0]))
            if not i or any((rows[i] != rows[i - 1]).any() for rows in found)
        ]
        address, view = self._memory.host(4 * layout.width * (len(changes) + 1))
        lines = view.view(np.uint32).reshape(-1, layout.width)
        for line, step in enumerate(changes):
            lines[line] = found[0][step]
        lines[-1] = layout.idle()
        return Table(tuple(changes), lines, address)

    def _record_critical(self, lane: Lane, task: int, request: int, table: Table | None) -> None:
        lane.world.enter()
        if self._device.counting:
            elastic = [False] * len(lane.task.program.steps)
            lane.runs = Runs(lane.task.program, elastic, self._memory)
        announcement = None
        if table is not None:
            announcement = self._announcement(lane, table, self._slots[task, request])
        borders = Borders(self._controls, lane.number, self._plan.tasks[task].borders)
        record_critical(lane, self._originals(task, request), announcement, borders)

    def _announcement(self, lane: Lane, table: Table, slot: int) -> Announcement:
        return RowWrites(table, self._controls.row(slot))

    def _record_normal(self, lane: Lane, task: int, request: int) -> None:
        lane.world.enter()
        steps = len(lane.task.program.steps)
        counters = self._memory.device(8 * steps)
        places = self._places(lane, task, request, counters)
        used = 2 * steps if any(place.forms for place in places) else 0
        borders = Borders(self._controls, lane.number, self._plan.tasks[task].borders)
        record_normal(lane, places, self._controls, (counters, used), borders)

    def _places(self, lane: Lane, task: int, request: int, counters: int) -> list[Place]:
        """The steps of a normal lane; ``counters``: room for two words of each."""
        steps = lane.task.program.steps
        words = [self._layout.step(task, request, i) for i in range(len(steps))]
        if self._device.counting:
            elastic = [w is not None and w.elastic for w in words]
            lane.runs = Runs(lane.task.program, elastic, self._memory)
        originals = self._originals(task, request)
        places = []
        for index, step in enumerate(steps):
            profile, asked = self._profiles[task][index], words[index]
            forms = (
                tuple(profile.forms[t] for t in asked.threads) if asked and asked.elastic else ()
            )
            place = Place(
                step=step,
                alone_ns=profile.original_ns,
                original=originals[index],
                words=asked,
                forms=forms,
                resident=tuple(
                    resident_blocks(f.function, f.threads, step.kernel, lane.world) for f in forms
                ),
                counter=counters + 4 * index,
                shrunk=counters + 4 * (len(steps) + index),
                runs=lane.runs.address(index) if lane.runs and forms else 0,
            )
            places.append(place)
        return places

    def _warp_ns(self, task: int) -> float:
        """Over a request's steps: time alone x share of the warps that its blocks occupy then."""
        total = 0.0
        world, limits = self._device.world, self._device.gpu.limits
        program = self._mix.tasks[task].program
        functions = self._device.functions(program)
        for step, profile, function in zip(
            program.steps, self._profiles[task], functions, strict=True
        ):
            kernel = step.kernel
            full = resident_blocks(function, kernel.threads, kernel, world)
            warps = min(full, kernel.blocks) * -(-kernel.threads // limits.warp)
            total += profile.original_ns * warps / (world.sms * limits.warps)
        return total
