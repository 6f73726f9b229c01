"""One process of ``benchmarks.mps_gpu``: runs one network when it is told to, and says how it went.

Lines of JSON: it says `Hello`; for each `Ask` it opens a session, says ``"ready"``, waits until the
time that it is then told (ns of the monotonic clock, which all processes share), runs, and says a
``miriam.bench.JobRecord``. It ends with its input.

    python -m benchmarks.mps_client DEVICE NETWORK IN_FLIGHT SEED
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TextIO

import msgspec

from miriam.bench import Closed, JobRecord, Machine, Networks, Sample, WorkloadTask
from miriam.bench.jobs import TaskRecord
from miriam.bench.metrics import rate_hz
from miriam.bench.pytorch import TorchModels
from miriam.bench.solo import OnDevice
from miriam.bench.verify import Checker
from miriam.bench.zoo import Zoo
from miriam.coordinator import Task, policies
from miriam.devices.contract import Completion, Device, Session
from miriam.runtime import Driver, Offer, Request


@dataclass(frozen=True, slots=True)
class Hello:
    """What the process sees of the GPU: how many SMs, and the hardware's numbers of those used."""

    sms: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """A run: a closed loop with a gap for a window, shorter if ``enough`` requests are done."""

    gap_ns: int
    window_ns: int
    enough: int | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A network on a device as ``task``; ``networks`` knows its inputs and what it gives alone."""

    device: Device
    networks: Networks
    task: Task

    def serve(self, asked: Iterator[str], said: TextIO) -> None:
        """Answer each line of ``asked``."""
        for line in asked:
            ask = msgspec.json.decode(line, type=Ask)
            with closing(self.device.open([self.task], policies.get("multistream"))) as session:
                say(said, "ready")
                begin_ns = int(next(asked))
                while time.monotonic_ns() < begin_ns:
                    pass
                found = self._run(session, ask)
            say(said, found)

    def _run(self, session: Session, ask: Ask) -> JobRecord:
        """A run that begins now."""
        begin_ns, network = session.now_ns, self.task.name
        offer = Offer(
            task=self.task,
            arrivals=Closed(self.task.in_flight, ask.gap_ns),
            times_ns=(begin_ns,) * self.task.in_flight,
            inputs=lambda ordinal: self.networks.inputs(network, ordinal),
        )
        checker = Checker(self.networks, [network])

        def completed(task: int, request: Request, done: Completion) -> None:
            checker.check(done, request.ordinal)

        driver = Driver(session, [offer], watch=completed)
        record = driver.run(begin_ns + ask.window_ns, ask.enough)
        (served,) = record.served
        done = TaskRecord(
            latency=Sample.of(request.latency_ns for request in served),
            service=Sample.of(request.service_ns for request in served),
            rate_hz=rate_hz(len(served), max(1, record.window_ns - begin_ns)),
        )
        occupancy, faults = record.usage.achieved_occupancy, tuple(checker.faults)
        return JobRecord((done,), occupancy, verified=checker.verdict, faults=faults)


def say(said: TextIO, what: object) -> None:
    """One line of JSON."""
    said.write(msgspec.json.encode(what).decode() + "\n")
    said.flush()


def main() -> None:
    """Serve standard input."""
    from miriam.devices.cuda.device import CudaDevice

    name, network, in_flight, seed = sys.argv[1:]
    device = Machine(name).open(compute=False)
    assert isinstance(device, CudaDevice)
    zoo, captures = Zoo(device.gpu.arch, int(seed)), TorchModels(device, int(seed))
    networks = OnDevice(zoo, device, captures)
    work = WorkloadTask(network, network, Closed(int(in_flight)), in_flight=int(in_flight))
    (program,) = networks.programs([work])
    networks.prepare(network)
    weights = networks.weights(network)
    task = Task(network, program, in_flight=work.in_flight, weights=weights)
    ids = device.world.ids(device.controls.function("miriam_where"))
    say(sys.stdout, Hello(device.gpu.sms, ids))
    Client(device, networks, task).serve(iter(sys.stdin), sys.stdout)


if __name__ == "__main__":
    main()
