"""miriam-grid: the ablation without elastic blocks."""

from __future__ import annotations

from dataclasses import replace

from miriam.coordinator import Mix, Plan, Task
from miriam.coordinator.policies import get
from miriam.kernels import Cost, Resources, Variant
from tests.sim.programs import gpu, kernel, program

COST = Cost(flop=1e4, l2_bytes=1e3, dram_bytes=1e2)
THREADS = 768


def plan(policy: str) -> Plan:
    """A critical kernel on every SM leaves fewer threads than the normal kernel's block has."""
    spec = kernel(64, THREADS)
    half = Variant(THREADS // 2, Resources(40, 0), fold=2)
    normal = program("n", [(replace(spec, variants=(*spec.variants, half)), COST)])
    critical = program("c", [(kernel(8, 512), COST)])
    tasks = (Task("c", critical, critical=True), Task("n", normal))
    return get(policy).plan(Mix(gpu(8).spec, tasks, ((50_000,), (50_000,))))


def test_it_grants_only_blocks_of_the_original_size() -> None:
    folded, whole = (plan(p).grants[0, 1][0][0] for p in ("miriam", "miriam-grid"))
    assert folded.threads == THREADS // 2
    assert whole.threads in (0, THREADS)


def test_all_else_is_miriams() -> None:
    folded, whole = plan("miriam"), plan("miriam-grid")
    assert folded.tasks == whole.tasks
    assert folded.grants.keys() == whole.grants.keys()
