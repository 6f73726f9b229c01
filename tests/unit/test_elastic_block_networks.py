"""The networks' kernels on half and a quarter of their threads: what a GPU needs for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from miriam.compile import compile_source
from miriam.elastic import elasticize
from miriam.kernels import Dim3

NETWORKS = Path(__file__).parents[2] / "miriam" / "models" / "cuda"
KERNELS = {
    "conv": (("conv2d<3, 1, 64, 64, 8, true>", 128),),
    "dense": (("dense<1>", 128), ("dense<8>", 128)),
    "pointwise": (("relu_in_place", 128), ("softmax_in_place", 256)),
    "pool": (("max_pool<3, 2>", 256), ("global_average_pool", 256)),
    "recurrent": (("gru_cell", 128), ("lstm_cell", 128)),
}
REGISTERS_AT_ONCE = 8  # what an SM gives a thread is a multiple of this


@pytest.mark.parametrize("arch", ["sm_87", "sm_90"])
@pytest.mark.parametrize("name", KERNELS)
def test_folds_spill_nothing_and_take_no_more_registers(name: str, arch: str) -> None:
    path = NETWORKS / f"{name}.cu"
    made = elasticize(path, arch=arch)
    wanted = {
        (kernel, fold): made.kernel(kernel).entry("yield", kernel, fold, Dim3(threads))
        for kernel, threads in KERNELS[name]
        for fold in (2, 4)
    }
    names = [kernel for kernel, _ in KERNELS[name]]
    originals = compile_source(made.original, str(path), names, arch).resources
    folded = compile_source(made.source, str(path), list(wanted.values()), arch).resources
    for kernel, threads in KERNELS[name]:
        before = originals[kernel]
        for fold in (2, 4):
            after = folded[wanted[kernel, fold]]
            physical = made.kernel(kernel).physical_threads(threads, fold)
            assert after.local_bytes <= before.local_bytes
            assert physical * granted(after.registers) <= threads * granted(before.registers)
            assert after.static_shared_bytes <= before.static_shared_bytes + 16


def granted(registers: int) -> int:
    return -(-registers // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
