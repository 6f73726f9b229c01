"""A mix in the simulator: will it fit, and if not, what breaks first and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from miriam.bench.arrivals import Arrivals, Closed, Poisson, Trace, Uniform, stream
from miriam.bench.explain import Delays
from miriam.bench.networks import Networks
from miriam.bench.progress import Beside, step_times
from miriam.bench.verdict import Break, Verdict, broken, judge
from miriam.coordinator import Policy, Task, policies
from miriam.devices.contract import Device
from miriam.devices.observe import Observer
from miriam.errors import UsageError
from miriam.runtime import Driver, Following, MixFile, Offer, Record, Rules, TaskEntry

_SECOND_NS = 1_000_000_000
SOLO_NS = 250_000_000
"""A closed loop alone repeats itself, so that its run alone need not be longer than this."""

_SoloKey = tuple[str, Following, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """A mix under a policy for ``seconds`` of device time; ``seed`` is the arrivals'."""

    mix: MixFile
    policy: Policy
    seconds: float = 2.0
    seed: int = 1

    def __post_init__(self) -> None:
        # A NaN fails this comparison too.
        if not 1 <= self.seconds * _SECOND_NS < 2**62:
            raise UsageError("seconds", "a finite number of at least 1e-9", self.seconds)
        if self.seed < 0:
            raise UsageError("seed", "not negative", self.seed)

    @property
    def window_ns(self) -> int:
        """The device time."""
        return round(self.seconds * _SECOND_NS)


class Simulation:
    """One question put to one simulated device.

    UsageError for a device that is not simulated, or an arrivals file that can not be read.
    """

    def __init__(self, device: Device, networks: Networks, question: Question) -> None:
        if not device.simulated:
            raise UsageError("device", "a simulated one, sim:<gpu>", device.name)
        mix = question.mix
        self._device, self._question, self._mix = device, question, mix
        self._rules = Rules(mix.late == "drop", mix.queue)
        self._offers = [self._offer(networks, entry) for entry in mix.tasks]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks as the device sees them, in the file's order."""
        return tuple(offer.task for offer in self._offers)

    def run(
        self,
        observers: Sequence[Observer] = (),
        progress: Callable[[str, int], None] = lambda run, finish_ns: None,
    ) -> Verdict:
        """Each task alone, then all together, then up to the first break with a closer look.

        ``observers`` see the tasks together. ``progress`` hears of each completion: the task
        that runs alone or ``together`` or ``explaining``, and its time.
        """
        window_ns = self._question.window_ns
        alone: dict[_SoloKey, Record] = {}
        solos = [self._alone(offer, alone, progress) for offer in self._offers]
        offers = _weighted(self._mix.tasks, self._offers, solos)
        beside = Beside(
            [task.critical for task in self.tasks],
            [step_times(self._device, task.program) for task in self.tasks],
        )
        watched = (*observers, beside)
        record = self._together(offers, window_ns, watched, "together", progress)
        beside_hz = beside.rates_hz(record.served)
        return Verdict(
            device=self._device.name,
            policy=self._question.policy.name,
            seed=self._question.seed,
            window_ns=window_ns,
            mix=self._mix,
            tasks=tuple(
                judge(entry, record, task, solos[task], beside_hz[task])
                for task, entry in enumerate(self._mix.tasks)
            ),
            first_break=self._first_break(offers, record, progress),
        )

    def _offer(self, networks: Networks, entry: TaskEntry) -> Offer:
        task = Task(
            name=entry.title,
            program=networks.program(entry.model),
            critical=entry.critical,
            priority=entry.priority,
            deadline_ns=entry.deadline_ns,
            in_flight=entry.in_flight,
        )
        arrivals = _arrivals(self._mix, entry)
        rng = stream(self._question.seed, "mix", entry.title)
        return Offer(task, arrivals, tuple(arrivals.known(self._question.window_ns, rng)))

    def _alone(
        self, offer: Offer, known: dict[_SoloKey, Record], progress: Callable[[str, int], None]
    ) -> Record:
        task, arrivals = offer.task, offer.arrivals
        key = task.program.name, arrivals, task.in_flight, offer.times_ns
        if key not in known:
            window_ns = self._question.window_ns
            if isinstance(arrivals, Closed):
                window_ns = min(window_ns, SOLO_NS)
            with closing(self._device.open([task], policies.get("multistream"))) as session:
                known[key] = Driver(
                    session, [offer], watch=lambda _t, _r, done: progress(task.name, done.finish_ns)
                ).run(window_ns)
        return known[key]

    def _together(
        self,
        offers: Sequence[Offer],
        window_ns: int,
        observers: Sequence[Observer],
        name: str,
        progress: Callable[[str, int], None],
    ) -> Record:
        tasks = [offer.task for offer in offers]
        with closing(self._device.open(tasks, self._question.policy, observers)) as session:
            return Driver(
                session, offers, self._rules, lambda _t, _r, done: progress(name, done.finish_ns)
            ).run(window_ns)

    def _first_break(
        self, offers: Sequence[Offer], record: Record, progress: Callable[[str, int], None]
    ) -> Break | None:
        breaks = [
            (found.at_ns, task, found)
            for task, entry in enumerate(self._mix.tasks)
            for request in record.requests[task]
            if (found := broken(entry, request, record.window_ns))
        ]
        if not breaks:
            return None
        at_ns, task, found = min(breaks, key=lambda b: b[:2])
        number = record.requests[task][found.request].number
        if number is None or not offers[task].task.critical:
            return found
        # The same run again, watched closely, as far as is needed.
        delays = Delays(self._device, self.tasks)
        until_ns = at_ns + (found.late_ns or 0)
        self._together(offers, until_ns, (delays,), "explaining", progress)
        return replace(found, delays=delays.parts(task, number, until_ns))


def _arrivals(mix: MixFile, entry: TaskEntry) -> Arrivals:
    wanted = entry.arrivals
    if wanted.kind == "uniform" and wanted.hz is not None:
        return Uniform(wanted.hz)
    if wanted.kind == "poisson" and wanted.hz is not None:
        return Poisson(wanted.hz)
    if wanted.kind == "trace" and wanted.file is not None:
        return Trace.read(mix.folder / wanted.file)
    return Closed(entry.in_flight)


def _weighted(
    entries: Sequence[TaskEntry], offers: Sequence[Offer], solos: Sequence[Record]
) -> list[Offer]:
    """The offers with the weights that the mix names; without any, nothing is held back."""
    if all(entry.weight is None for entry in entries):
        return list(offers)
    return [
        offer if entry.critical else replace(offer, turn_ns=_service_ns(solo) / (entry.weight or 1))
        for entry, offer, solo in zip(entries, offers, solos, strict=True)
    ]


def _service_ns(solo: Record) -> float:
    """What a request takes alone; the whole window where none was done in it."""
    times = sorted(request.service_ns for request in solo.served[0])
    return times[len(times) // 2] if times else solo.window_ns
