"""Tries plans with all tasks of a mix, for a policy that chooses by what it sees.

Every task runs in a closed loop on inputs of zeros, as its times do not depend on what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miriam.coordinator import Mix, Plan, Snapshot, Waiting, admit_in_flight
from miriam.coordinator.corun import Candidate
from miriam.devices.contract import Arrays, Completion
from miriam.devices.cuda.profile import StepProfile
from miriam.devices.cuda.session import CudaSession
from miriam.kernels import Program

if TYPE_CHECKING:
    from miriam.devices.cuda.device import CudaDevice

ENOUGH = 60
"""A plan is tried until so many requests of each critical task have ended."""

SHORTEST_NS = 60_000_000
"""But at least for so long, as several normal requests have to end too."""

LONGEST_NS = 250_000_000
"""And at most for so long."""

_PERCENTILE = 95


@dataclass(frozen=True, slots=True)
class _Given:
    """The policy of a plan that is there."""

    given: Plan
    name: str = "given"

    def plan(self, mix: Mix) -> Plan:
        """The plan."""
        return self.given

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


def tried(
    device: CudaDevice, mix: Mix, plans: Sequence[Plan], profiles: Sequence[Sequence[StepProfile]]
) -> tuple[Candidate, ...]:
    """What each of ``plans`` shows; slow-downs are over the first one.

    A plan that there is no other one to choose than is not tried.
    """
    if len(plans) == 1:
        return (Candidate(plans[0], 1.0, 0.0),)
    seen = []
    for plan in plans:
        with closing(CudaSession(device, mix, _Given(plan), profiles, ())) as session:
            seen.append(_run(session, mix))
    first, _ = seen[0]
    return tuple(
        Candidate(plan, max(s / f for s, f in zip(services_ns, first, strict=True)), gain)
        for plan, (services_ns, gain) in zip(plans, seen, strict=True)
    )


def _run(session: CudaSession, mix: Mix) -> tuple[list[float], float]:
    """The 95th percentile of each critical task's service, ns, and the normal work done per ns."""
    inputs = [_zeros(task.program) for task in mix.tasks]
    for task, work in enumerate(mix.tasks):
        for _ in range(work.in_flight):
            session.submit(task, session.now_ns, inputs[task])
    began_ns = session.now_ns
    done: list[list[Completion]] = [[] for _ in mix.tasks]
    while _goes_on(session.now_ns - began_ns, [len(done[c]) for c in mix.critical]):
        for completion in session.advance(began_ns + LONGEST_NS):
            done[completion.task].append(completion)
            session.submit(completion.task, session.now_ns, inputs[completion.task])
    work_ns = sum(len(done[n]) * sum(mix.step_ns[n]) for n in mix.normal)
    services = [[d.finish_ns - d.start_ns for d in done[c]] or [LONGEST_NS] for c in mix.critical]
    return (
        [float(np.percentile(values, _PERCENTILE)) for values in services],
        work_ns / (session.now_ns - began_ns),
    )


def _goes_on(passed_ns: int, ended: Sequence[int]) -> bool:
    """Whether a plan is tried on, of which so many critical requests have ``ended``."""
    return passed_ns < SHORTEST_NS or (passed_ns < LONGEST_NS and min(ended) < ENOUGH)


def _zeros(program: Program) -> Arrays:
    arrays = {b.name: np.zeros(b.shape, b.dtype) for b in program.named("input")}
    for array in arrays.values():
        # So that it is copied to page-locked memory once.
        array.flags.writeable = False
    return arrays
