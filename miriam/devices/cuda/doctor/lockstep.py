"""Does a critical graph wait for normal graphs that leave it room? Run as a process of its own.

``CUDA_DEVICE_MAX_CONNECTIONS`` is read when a process starts to use the GPU, so each value takes a
new one: ``python -m miriam.devices.cuda.doctor.lockstep GPU SMS`` prints the rows as JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from miriam.coordinator import Task
from miriam.devices.cuda.buffers import Buffers
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.doctor.report import Kind, LockstepRow, quantile
from miriam.devices.cuda.doctor.subject import (
    LIMIT_S,
    Mode,
    Subject,
    busy_program,
    elapsed_us,
    spin,
)
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.graphs import record_critical, record_normal
from miriam.devices.cuda.lane import Lane
from miriam.devices.cuda.memory import Memory
from miriam.devices.cuda.patience import drain, wait_for
from miriam.devices.cuda.rows import RowWrites, Table
from miriam.devices.cuda.world import gpu
from miriam.errors import DeviceError

CONNECTIONS = (1, 8, 32)
"""8 is the driver's own setting, 32 the one that Miriam makes where there is none."""

STREAMS = (1, 2, 8, 16)

_TRIALS = 15
_CHILD_LIMIT_S = 60
_CRITICAL_STEPS, _NORMAL_STEPS, _ROUNDS = 20, 60, 2_000


@dataclass(frozen=True, slots=True)
class _Times:
    start_us: float
    run_us: float


class _Pair:
    """A critical lane and normal lanes in one world, recorded as a session records them."""

    def __init__(self, device: CudaDevice, kind: Kind) -> None:
        self._device, self._kind = device, kind
        arch, sms = device.gpu.arch, device.world.sms
        self._memory = Memory()
        # A warp on each SM, or one block in all of a grid that fills the world.
        if kind == "rigid":
            steps = _NORMAL_STEPS
            normal = busy_program("normal", arch, steps, blocks=sms, threads=32, rounds=_ROUNDS)
        else:
            steps = 2
            rounds = 20 * _ROUNDS // sms + 1
            normal = busy_program("normal", arch, 2, blocks=16 * sms, threads=128, rounds=rounds)
        self._subject = Subject(device, normal)
        self._subject.write(self._subject.word(0), 1, steps)
        critical = busy_program(
            "critical", arch, _CRITICAL_STEPS, blocks=sms, threads=32, rounds=_ROUNDS
        )
        device.profile(critical)
        self.critical = self._lane(Task("critical", critical, critical=True), -(2**31))
        self._record_critical()
        self.normal: list[Lane] = []

    def grow(self, streams: int) -> None:
        """Have ``streams`` normal lanes."""
        while len(self.normal) < streams:
            lane = self._lane(Task("normal", self._subject.program), 0)
            mode: Mode = "original" if self._kind == "rigid" else "chain"
            steps = len(lane.task.program.steps)
            counters = self._memory.device(4 * 2 * steps)
            places = [
                self._subject.place_at(i, mode, counters + 8 * i, counters + 8 * i + 4)
                for i in range(steps)
            ]
            record_normal(lane, places, self._subject.controls, (counters, 2 * steps))
            self.normal.append(lane)

    def _lane(self, task: Task, priority: int) -> Lane:
        buffers = Buffers(task.program, {}, self._memory)
        side = self._device.world.stream(priority)
        return Lane(task, self._device.world, priority, buffers, side)

    def _record_critical(self) -> None:
        lane = self.critical
        originals = [self._device.kernels.original(s) for s in lane.task.program.steps]
        row, (source, view) = self._memory.device(64), self._memory.host(128)
        lines = view.view(np.uint32).reshape(2, -1)
        record_critical(lane, originals, RowWrites(Table((0,), lines, source), row))
        drain(lane.stream)

    def alone_us(self) -> float:
        """The critical graph's time with nothing beside it."""
        return quantile([self._critical().run_us for _ in range(_TRIALS)], 0.5)

    def _critical(self) -> _Times:
        asked = ask(driver.cuEventCreate(0))
        ask(driver.cuEventRecord(asked, self.critical.stream))
        self.critical.start({})
        wait_for(self.critical.ended, LIMIT_S)
        times = _Times(
            elapsed_us(asked, self.critical.began),
            elapsed_us(self.critical.began, self.critical.ended),
        )
        ask(driver.cuEventDestroy(asked))
        return times

    def beside(self) -> tuple[_Times, bool] | None:
        """A critical request beside running normal ones, and whether it outlasted them all."""
        for lane in self.normal:
            lane.start({})
        spin(150e-6)
        running = not self.normal[-1].has_ended()
        times = self._critical()
        outlasted = all(lane.has_ended() for lane in self.normal)
        for lane in self.normal:
            drain(lane.stream)
        return (times, outlasted) if running else None


def _rows(ordinal: int, sms: int, connections: int) -> list[LockstepRow]:
    found = gpu(ordinal)
    device = CudaDevice(
        found, found.whole() if sms == found.sms else found.world(0, sms), counting=False
    )
    rows = []
    kinds: tuple[Kind, ...] = ("rigid", "quota")
    for kind in kinds:
        pair = _Pair(device, kind)
        alone_us = pair.alone_us()
        for streams in STREAMS:
            pair.grow(streams)
            beside = [b for b in (pair.beside() for _ in range(_TRIALS)) if b is not None]
            if not beside:
                continue
            runs = [times.run_us for times, _ in beside]
            p50_us, p99_us = (round(quantile(runs, share), 1) for share in (0.5, 0.99))
            start_us = round(quantile([times.start_us for times, _ in beside], 0.5), 1)
            waited = sum(outlasted for _, outlasted in beside)
            where = (connections, device.world.sms, kind, streams)
            rows.append(
                LockstepRow(
                    *where, round(alone_us, 1), p50_us, p99_us, start_us, waited, len(beside)
                )
            )
    return rows


def lockstep(ordinal: int, sms: int, environment: Mapping[str, str]) -> tuple[LockstepRow, ...]:
    """The rows of each value of CUDA_DEVICE_MAX_CONNECTIONS; DeviceError where a child fails."""
    rows: list[LockstepRow] = []
    for connections in CONNECTIONS:
        settings = {**environment, _VARIABLE: str(connections)}
        command = [sys.executable, "-m", __name__, str(ordinal), str(sms)]
        try:
            done = subprocess.run(
                command, env=settings, capture_output=True, timeout=_CHILD_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise DeviceError(f"{_VARIABLE}={connections}: no end in {_CHILD_LIMIT_S} s") from None
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise DeviceError(f"{_VARIABLE}={connections}: {' '.join(last) or 'failed'}")
        rows += msgspec.json.decode(done.stdout, type=list[LockstepRow])
    return tuple(rows)


_VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"


def main(arguments: Sequence[str]) -> None:
    """Print the rows of this process's setting."""
    ordinal, sms = map(int, arguments)
    rows = _rows(ordinal, sms, int(os.environ[_VARIABLE]))
    sys.stdout.buffer.write(msgspec.json.encode(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
