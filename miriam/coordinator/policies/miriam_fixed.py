"""Miriam with fixed shards: the ablation that section 3 of the paper argues against.

Each normal step keeps one shard size beside all steps of a critical task: the smallest that
`miriam` grants it beside any of them, as a fixed size has to suit all. It leaves room unused
beside the steps that spare more, and takes room from those that spare none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from miriam.coordinator.plan import CLOSED, Grant, GrantTable, Plan
from miriam.coordinator.policies.miriam import Miriam
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class MiriamFixed:
    """One shard size for each normal step."""

    name: str = "miriam-fixed"

    def plan(self, mix: Mix) -> Plan:
        """Miriam's plan with every column of its grants levelled."""
        # An opening beside one step would become one beside all of them.
        plan = Miriam(budget=0).plan(mix)
        levelled = {pair: _levelled(table) for pair, table in plan.grants.items()}
        return replace(plan, grants=levelled)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


def _levelled(table: GrantTable) -> GrantTable:
    return (tuple(_least(column) for column in zip(*table, strict=True)),) * len(table)


def _least(column: Sequence[Grant]) -> Grant:
    return min((g for g in column if g.blocks), key=lambda g: g.blocks, default=CLOSED)


POLICY = MiriamFixed()
