"""Tries plans on a GPU, on inputs of zeros, as times hardly depend on what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from miriam.coordinator import Mix, Plan, Policy
from miriam.coordinator.corun import Candidate
from miriam.devices import tryout
from miriam.devices.contract import Arrays
from miriam.devices.cuda.profile import StepProfile
from miriam.devices.cuda.session import CudaSession
from miriam.devices.cuda.world import World
from miriam.devices.observe import Observer
from miriam.kernels import Program

if TYPE_CHECKING:
    from miriam.devices.cuda.device import CudaDevice

LENGTH = tryout.Length(requests=150, shortest_ns=60_000_000, longest_ns=350_000_000, percentile=99)
"""Where so many requests end in time, one that was slow by chance does not decide."""


def to_try(plans: Sequence[Plan], world: World) -> list[Plan]:
    """``plans``; in a world of some SMs, without those that give SMs to tasks.

    Their green contexts would overlap with the world's own; all processes that met a certain fault
    of the GPU had had such ones (docs/bench.md, "A fault in worlds of some SMs"). Who asks for such
    a plan has it.
    """
    if world.green is None:
        return list(plans)
    return [plan for plan in plans if not any(task.sms for task in plan.tasks)]


def tried(
    device: CudaDevice, mix: Mix, plans: Sequence[Plan], profiles: Sequence[Sequence[StepProfile]]
) -> tuple[Candidate, ...]:
    """What each of ``plans`` shows (`miriam.devices.tryout`)."""

    def opened(policy: Policy, observers: Sequence[Observer]) -> CudaSession:
        return CudaSession(device, mix, policy, profiles, observers)

    inputs = [_zeros(task.program) for task in mix.tasks]
    return tryout.tried(
        mix, plans, opened, LENGTH, inputs, warm_up_ns=LENGTH.shortest_ns, by_step=False
    )


def _zeros(program: Program) -> Arrays:
    arrays = {b.name: np.zeros(b.shape, b.dtype) for b in program.named("input")}
    for array in arrays.values():
        # So that it is copied to page-locked memory once.
        array.flags.writeable = False
    return arrays
