"""What the simulator knows of a GPU, and how long one block takes on it.

A block progresses at the rate that its SM and the memory system leave it: its time is a fixed
part plus the largest of three times (issue, L2, DRAM), each stretched by how far that resource
is asked for more than it has. One block alone saturates none of them: its issue rate is limited
by its warps, its bandwidth by the bytes that its warps keep in flight (Little's law).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from miriam.errors import UsageError
from miriam.kernels import Cost, GpuSpec, KernelSpec, Variant


@dataclass(frozen=True, slots=True)
class Costs:
    """Times of launching and coordinating, ns, of one H200 (docs/architecture.md).

    ``node_ns`` is fitted (docs/results/sim-vs-h200.md), ``claim_ns`` half a claim loop.
    """

    host_launch_ns: int = 8_000
    node_ns: int = 1_400
    gate_ns: int = 700
    claim_ns: int = 700
    resume_ns: int = 2_600
    control_write_ns: int = 1_000


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU: public figures, and the few parameters of the model.

    ``issue_efficiency``: share of the peak FP32 rate that a well-tiled kernel issues.
    ``saturating_warps``: resident warps from which an SM's issue slots are full.
    ``bytes_in_flight_per_warp`` and the latencies bound one block's bandwidth.
    ``block_start_ns``: scheduling a block and filling its pipeline.
    ``end_slack``: blocks whose ends lie apart by at most this share of their time end together,
    in the middle; an event per block and SM would make up most of the simulator's work.
    """

    spec: GpuSpec
    clock_mhz: float
    fp32_lanes_per_sm: int
    l2_bytes: int
    l2_bytes_per_clock_per_sm: float
    source: str
    issue_efficiency: float = 0.42
    saturating_warps: int = 8
    bytes_in_flight_per_warp: int = 4_096
    l2_latency_ns: float = 200.0
    dram_latency_ns: float = 600.0
    block_start_ns: float = 1_600.0
    end_slack: float = 0.05
    costs: Costs = field(default_factory=Costs)

    def world(self, sms: int) -> GpuModel:
        """The same GPU limited to ``sms`` SMs; L2 and DRAM stay whole."""
        group = self.spec.sm_group
        if sms % group and sms != self.spec.sms:
            raise UsageError(f"device sim:{self.spec.name}", f"whole groups of {group} SMs", sms)
        if not 1 <= sms <= self.spec.sms:
            raise UsageError(
                f"device sim:{self.spec.name}", f"a world has 1 to {self.spec.sms} SMs", sms
            )
        name = self.spec.name if sms == self.spec.sms else f"{self.spec.name}:{sms}"
        return replace(self, spec=replace(self.spec, name=name, sms=sms))

    @property
    def sm_flop_per_ns(self) -> float:
        """What one full SM issues."""
        return 2 * self.fp32_lanes_per_sm * self.clock_mhz * 1e-3 * self.issue_efficiency

    @property
    def l2_bytes_per_ns(self) -> float:
        """L2 bandwidth of the whole GPU."""
        return self.l2_bytes_per_clock_per_sm * self.clock_mhz * 1e-3 * self.spec.sms


@dataclass(frozen=True, slots=True)
class BlockProfile:
    """One block's needs on one GPU.

    ``*_ns``: its time alone if only that resource mattered. ``*_work``: how long the whole
    resource (one SM's issue slots, the GPU's L2 or DRAM) is busy for it, ns.
    """

    fixed_ns: float
    issue_ns: float
    l2_ns: float
    dram_ns: float
    issue_work: float
    l2_work: float
    dram_work: float
    memory_ns: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory_ns", max(self.l2_ns, self.dram_ns))

    def block_ns(self, issue: float, l2: float, dram: float) -> float:
        """Time of the block when each resource stretches its share by these factors (>= 1)."""
        longest = self.issue_ns * issue
        if self.l2_ns * l2 > longest:
            longest = self.l2_ns * l2
        if self.dram_ns * dram > longest:
            longest = self.dram_ns * dram
        return self.fixed_ns + longest


def block_profile(
    model: GpuModel,
    kernel: KernelSpec,
    variant: Variant,
    cost: Cost,
    *,
    cached: bool,
    claim: bool,
) -> BlockProfile:
    """The needs of one block of ``variant``.

    ``cached``: the program's whole footprint stays in L2 between requests, so nothing of it
    comes from DRAM. ``claim``: the block is claimed from a counter (elastic form).
    """
    warps = -(-variant.threads // 32)
    issue_work = cost.flop / model.sm_flop_per_ns
    in_flight = warps * model.bytes_in_flight_per_warp
    dram_bytes = 0.0 if cached else cost.dram_bytes
    l2_work = cost.l2_bytes / model.l2_bytes_per_ns
    dram_work = dram_bytes / model.spec.dram_gbps
    return BlockProfile(
        fixed_ns=model.block_start_ns + (model.costs.claim_ns if claim else 0),
        issue_ns=issue_work / min(1.0, warps / model.saturating_warps),
        l2_ns=max(l2_work, cost.l2_bytes / in_flight * model.l2_latency_ns),
        dram_ns=max(dram_work, dram_bytes / in_flight * model.dram_latency_ns),
        issue_work=issue_work,
        l2_work=l2_work,
        dram_work=dram_work,
    )
