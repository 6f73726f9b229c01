"""What every device offers: sessions that run requests of tasks under a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator import Policy, Task
from miriam.devices.observe import Observer
from miriam.kernels import GpuSpec

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished request. Times are ns since the session opened.

    ``start_ns`` is the start of its first kernel. ``outputs`` and ``runs`` (how often each
    logical block of each step ran: one array per step) are None when nothing was computed.
    """

    task: int
    request: int
    arrival_ns: int
    start_ns: int
    finish_ns: int
    outputs: Arrays | None = None
    runs: tuple[NDArray[np.int32], ...] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a session used so far.

    ``achieved_occupancy``: mean over SMs' busy time of resident warps / the SM's warp limit.
    ``busy_share``: mean share of the SMs with at least one resident block. ``yields_ns``: per
    critical request beside which the plan in use held every normal step, from its announcement
    until all normal work had left; empty under other plans, and where it is not known.
    ``untimed``: normal work was made to leave, but it takes a session that is ``timed`` to know.
    ``late_gates``: how many gates opened because their time was up, and not their grant.
    """

    achieved_occupancy: float
    busy_share: float
    yields_ns: tuple[int, ...] = ()
    untimed: bool = False
    late_gates: int = 0


class Session(Protocol):
    """Requests running on a device under one policy."""

    @property
    def now_ns(self) -> int:
        """Time since the session opened."""

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        """Hand in a request that arrives at ``arrival_ns`` (not before now); its number."""

    def withdraw(self, task: int, request: int) -> bool:
        """Take back a request that has not started; False if it has started or is done."""

    def advance(self, until_ns: int) -> Sequence[Completion]:
        """Run until something completes or ``until_ns`` is reached; what completed."""

    def usage(self) -> Usage:
        """What was used so far."""

    def close(self) -> None:
        """Drop what still runs; idempotent."""


class Device(Protocol):
    """A device: where sessions are opened."""

    @property
    def name(self) -> str:
        """The name that a user types, ``sim:orin`` for example."""

    @property
    def simulated(self) -> bool:
        """Whether its times are simulated."""

    @property
    def gpu(self) -> GpuSpec:
        """The GPU that policies plan for."""

    def open(
        self,
        tasks: Sequence[Task],
        policy: Policy,
        observers: Sequence[Observer] = (),
        *,
        timed: bool = False,
    ) -> Session:
        """Open a session for ``tasks`` under ``policy``; ``observers`` are told what happens.

        A device that can measure does so first for a `miriam.coordinator.corun.Measuring` policy,
        once for equal tasks; MissingCapabilityError where a plan is needed and nothing measured.
        ``timed``: find `Usage.yields_ns` even where that makes critical requests slower.
        """
