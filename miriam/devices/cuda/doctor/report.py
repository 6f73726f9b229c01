"""What the doctor found, as JSON (schema ``miriam.doctor/1``) and on the way there."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

import msgspec

State = Literal["ok", "note", "trap", "missing"]
Kind = Literal["rigid", "quota"]

LOCKSTEP_FROM = 2.0
"""A critical graph that takes so many times its time alone beside kernels that leave it room."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at: its measured value, why it matters, and what to do.

    ``note``: worth knowing. ``trap``: it costs latency or can hang. ``missing``: something of
    Miriam does not work without it. ``advice`` is empty where nothing has to be done.
    """

    what: str
    state: State
    value: str
    why: str
    advice: str = ""


class Cost(msgspec.Struct, frozen=True):
    """A measured cost in us. ``p99_us`` by nearest rank; ``target_us`` is for ``against``."""

    what: str
    p50_us: float
    p99_us: float
    samples: int
    target_us: float | None = None
    against: Literal["p50", "p99"] = "p50"

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target_us is None:
            return None
        return (self.p50_us if self.against == "p50" else self.p99_us) <= self.target_us


class LevelReport(msgspec.Struct, frozen=True):
    """Whether the device offers a level, and what was seen."""

    level: int
    offered: bool
    why: str


class WorldReport(msgspec.Struct, frozen=True):
    """SMs that were asked for, and those that a world got: by the hardware's numbers."""

    asked_sms: int
    sms: int
    groups: int
    ids: tuple[int, ...]


class LockstepRow(msgspec.Struct, frozen=True):
    """A critical graph beside ``streams`` normal ones that leave it room on every SM.

    ``connections``: CUDA_DEVICE_MAX_CONNECTIONS. ``kind``: small kernels
    as they are, or yield forms of which one block may go on. ``start_us``: from submission to its
    first kernel. ``waited``: how often all normal graphs were done when it was.
    """

    connections: int
    sms: int
    kind: Kind
    streams: int
    alone_us: float
    p50_us: float
    p99_us: float
    start_us: float
    waited: int
    samples: int

    @property
    def ratio(self) -> float:
        """Its time beside the others, from its first kernel on, to its time alone."""
        return self.p50_us / self.alone_us

    @property
    def locked(self) -> bool:
        """Whether it waited for them."""
        return self.ratio >= LOCKSTEP_FROM or 2 * self.waited > self.samples


class GpuReport(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, or a world of it: ``worlds`` are of the whole GPU, all else is of ``sms`` SMs."""

    name: str
    arch: str
    driver: str
    sms: int
    levels: tuple[LevelReport, ...]
    worlds: tuple[WorldReport, ...]
    costs: tuple[Cost, ...]
    findings: tuple[Finding, ...]
    lockstep: tuple[LockstepRow, ...]


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """``miriam.doctor/1``: ``gpu`` is null, and ``error`` says why, where none could be used."""

    schema: Literal["miriam.doctor/1"] = "miriam.doctor/1"
    miriam: str
    device: str
    date: str
    machine: tuple[Finding, ...]
    gpu: GpuReport | None = None
    error: str = ""


def encode(report: DoctorReport) -> bytes:
    """The report as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def quantile(values: Sequence[float], share: float) -> float:
    """The value at ``share``, 0 to 1, of ``values``, by nearest rank."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def cost(
    what: str,
    samples_us: Sequence[float],
    target_us: float | None = None,
    against: Literal["p50", "p99"] = "p50",
) -> Cost:
    """The cost that ``samples_us`` show."""
    p50_us, p99_us = (round(quantile(samples_us, share), 2) for share in (0.5, 0.99))
    return Cost(what, p50_us, p99_us, len(samples_us), target_us, against)
