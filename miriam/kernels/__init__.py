"""What a kernel, a step and a program are: specs, variants, resources, cost."""

from miriam.kernels.gpu import ARCHITECTURES, GpuSpec, SmLimits
from miriam.kernels.occupancy import BlockFootprint, footprint, resident_blocks
from miriam.kernels.program import (
    DTYPE_BYTES,
    Argument,
    Buffer,
    Cost,
    Pointer,
    Program,
    Scalar,
    Step,
)
from miriam.kernels.spec import Dim3, KernelSpec, Resources, Variant

__all__ = [
    "ARCHITECTURES",
    "DTYPE_BYTES",
    "Argument",
    "BlockFootprint",
    "Buffer",
    "Cost",
    "Dim3",
    "GpuSpec",
    "KernelSpec",
    "Pointer",
    "Program",
    "Resources",
    "Scalar",
    "SmLimits",
    "Step",
    "Variant",
    "footprint",
    "resident_blocks",
]
