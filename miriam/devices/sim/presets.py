"""The GPUs that the simulator knows, with the source of each public figure.

L2 bandwidth is not published for these parts. 20 bytes per clock and SM is what
microbenchmarks found on Volta and Turing (Jia et al., arXiv 1804.06826 and 1903.07486); the
later parts are given 45, fitted with the issue efficiency of 128 lanes, the saturating warps and
the start of a block to times alone on one H200 (docs/results/sim-vs-h200.md). An SM with 64 lanes
has twice the issue slots per lane: 0.65 there is an estimate. Launch and coordination costs are
the H200's everywhere.
"""

from __future__ import annotations

from miriam.devices.sim.model import GpuModel
from miriam.errors import UnknownNameError
from miriam.kernels import GpuSpec

MIB = 1 << 20

PRESETS: dict[str, GpuModel] = {
    model.spec.name: model
    for model in (
        GpuModel(
            spec=GpuSpec("rtx2060", "sm_75", 30, 336.0),
            clock_mhz=1_680,
            fp32_lanes_per_sm=64,
            issue_efficiency=0.65,
            l2_bytes=3 * MIB,
            l2_bytes_per_clock_per_sm=20,
            source="NVIDIA Turing GPU Architecture whitepaper, appendix; GeForce RTX 2060 page",
        ),
        GpuModel(
            spec=GpuSpec("xavier", "sm_72", 8, 136.5),
            clock_mhz=1_377,
            fp32_lanes_per_sm=64,
            issue_efficiency=0.65,
            l2_bytes=MIB // 2,
            l2_bytes_per_clock_per_sm=20,
            source="Jetson AGX Xavier Series data sheet (16 and 32 GB modules, MAXN)",
        ),
        GpuModel(
            spec=GpuSpec("orin", "sm_87", 16, 204.8),
            clock_mhz=1_300,
            fp32_lanes_per_sm=128,
            l2_bytes=4 * MIB,
            l2_bytes_per_clock_per_sm=45,
            source="Jetson AGX Orin Series data sheet (64 GB module); Orin technical brief",
        ),
        GpuModel(
            spec=GpuSpec("thor", "sm_110", 20, 273.0),
            clock_mhz=1_575,
            fp32_lanes_per_sm=128,
            l2_bytes=32 * MIB,
            l2_bytes_per_clock_per_sm=45,
            source="Jetson Thor Series data sheet (T5000); L2 as its deviceQuery reports",
        ),
        GpuModel(
            spec=GpuSpec("h200", "sm_90", 132, 4_800.0, sm_group=8),
            clock_mhz=1_980,
            fp32_lanes_per_sm=128,
            l2_bytes=60 * MIB,
            l2_bytes_per_clock_per_sm=45,
            source="NVIDIA H200 data sheet; H100 Tensor Core GPU Architecture whitepaper; L2 as "
            "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE reports it",
        ),
    )
}


def preset(name: str) -> GpuModel:
    """The GPU called ``name``; UnknownNameError lists the known ones."""
    if name not in PRESETS:
        raise UnknownNameError("device sim", name, PRESETS)
    return PRESETS[name]
