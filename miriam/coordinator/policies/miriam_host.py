"""Miriam as in the paper: the host sees a critical kernel start, picks a shard and launches it.

The same grants as `miriam`, but nothing of the normal tasks lies on the device beforehand
(arXiv 2307.04339, section 7): every shard is a launch of the host, which learns late how far the
critical task is, and a shard that runs is not stopped. It is here to measure what it buys to let
the coordinator live on the device, and for devices without graphs. In the simulator a launch
costs what it costs there, and the host sees everything at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from miriam.coordinator.plan import Plan
from miriam.coordinator.policies.miriam import POLICY as MIRIAM
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class MiriamHost:
    """Miriam's plan, carried out by the host."""

    name: str = "miriam-host"

    def plan(self, mix: Mix) -> Plan:
        """Miriam's grants for shards that the host launches."""
        return replace(MIRIAM.plan(mix), hosted=True)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


POLICY = MiriamHost()
