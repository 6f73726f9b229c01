"""A closer look at a run: occupancy layer by layer, and what ran where for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator import Task
from miriam.devices.observe import LaunchInfo, Observer
from miriam.kernels import GpuSpec

_SHOWN_REQUEST = 1
_Blocks = tuple[float, float, LaunchInfo, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LayerOccupancy:
    """A layer of the critical network while it runs.

    ``achieved_occupancy``: warps resident, of all tasks / the limit of the SMs that are busy;
    ``busy_share``: share of the SMs with a block.
    """

    layer: str
    ms: float
    achieved_occupancy: float
    busy_share: float


@dataclass(frozen=True, slots=True)
class Piece:
    """Blocks of a step that ran together on ``sms``; ``elastic``: as a shard. Times in us."""

    task: int
    step: int
    elastic: bool
    blocks: int
    sms: tuple[int, ...]
    began_us: float
    ended_us: float


@dataclass(frozen=True, slots=True)
class Deep:
    """The layers of the critical task, all its requests together, and one request's timeline."""

    layers: tuple[LayerOccupancy, ...]
    timeline: tuple[Piece, ...]


class _Total:
    """Warp-ns, busy SM-ns and ns of a layer."""

    def __init__(self) -> None:
        self.warp_ns = self.busy_ns = self.ns = 0.0


class DeepLook(Observer):
    """Collects a `Deep` of the first critical task."""

    def __init__(self, tasks: Sequence[Task], gpu: GpuSpec) -> None:
        self._gpu = gpu
        self._critical = next(i for i, task in enumerate(tasks) if task.critical)
        self._steps = tasks[self._critical].program.steps
        self._launches: dict[int, LaunchInfo] = {}
        self._layers = {step.layer: _Total() for step in self._steps}
        self._ran: list[_Blocks] = []
        self._window: tuple[float, float] | None = None
        self._spans: list[tuple[str, int, int]] = []

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        """Keep who launched it."""
        self._launches[launch.number] = launch

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        """Keep what ran where."""
        count = sum(number for _, number in blocks)
        self._ran.append((began_ns, ended_ns, self._launches[launch], count, tuple(sms)))

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        """Keep when the critical task's layers ran."""
        if task == self._critical:
            self._spans.append((self._steps[step].layer, began_ns, ended_ns))
            if request == _SHOWN_REQUEST:
                first = began_ns if self._window is None else self._window[0]
                self._window = (first, ended_ns)

    def result(self) -> Deep:
        """What was seen."""
        self._add_up()
        limit = self._gpu.limits.warps
        layers = tuple(
            LayerOccupancy(
                layer=name,
                ms=round(total.ns / 1e6, 4),
                achieved_occupancy=_share(total.warp_ns, total.busy_ns * limit),
                busy_share=_share(total.busy_ns, total.ns * self._gpu.sms),
            )
            for name, total in self._layers.items()
        )
        return Deep(layers, self._pieces())

    def _add_up(self) -> None:
        """Sweep over the layers in time; blocks sorted by their beginning stay open until then."""
        blocks = sorted(self._ran, key=lambda block: block[0])
        at = 0
        running: list[_Blocks] = []
        for layer, began_ns, ended_ns in self._spans:
            while at < len(blocks) and blocks[at][0] < ended_ns:
                running.append(blocks[at])
                at += 1
            running = [block for block in running if block[1] > began_ns]
            total = self._layers[layer]
            total.ns += ended_ns - began_ns
            by_sm: dict[int, list[tuple[float, float]]] = {}
            for start, end, launch, count, sms in running:
                start, end = max(start, began_ns), min(end, ended_ns)
                if end <= start:
                    continue
                total.warp_ns += count * -(-launch.threads // 32) * (end - start)
                for sm in sms:
                    by_sm.setdefault(sm, []).append((start, end))
            total.busy_ns += sum(_union_ns(spans) for spans in by_sm.values())

    def _pieces(self) -> tuple[Piece, ...]:
        if self._window is None:
            return ()
        first, last = self._window
        return tuple(
            Piece(
                task=launch.task,
                step=launch.step,
                elastic=launch.elastic,
                blocks=count,
                sms=sms,
                began_us=round((max(began, first) - first) / 1e3, 2),
                ended_us=round((min(ended, last) - first) / 1e3, 2),
            )
            for began, ended, launch, count, sms in self._ran
            if ended > first and began < last
        )


def _union_ns(spans: list[tuple[float, float]]) -> float:
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        if end > reached:
            total += end - max(start, reached)
            reached = end
    return total


def _share(value: float, whole: float) -> float:
    return round(value / whole, 4) if whole else 0.0
