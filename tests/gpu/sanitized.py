"""Runs every yield form of some networks once, words open: for a sanitizer to watch.

``python -m tests.gpu.sanitized NETWORK ...``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from miriam import models
from miriam.devices.cuda.buffers import Buffers
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.memory import Memory
from miriam.devices.cuda.world import gpu
from miriam.elastic.launch import Control
from miriam.kernels import Program


def run(device: CudaDevice, program: Program) -> int:
    """Launch each form of each step; how many launches that were."""
    device.kernels.load([program])
    memory, stream, launches = Memory(), device.world.stream(0), 0
    counter = memory.device(4)
    weights = {b.name: memory.device(b.bytes) for b in program.named("weight")}
    buffers = Buffers(program, weights, memory)
    for step in {(s.kernel.name, s.kernel.blocks): s for s in program.steps}.values():
        kernel = step.kernel
        for variant in kernel.variants:
            for form in device.kernels.forms(step, variant.threads):
                ask(driver.cuMemsetD32Async(counter, 0, 1, stream))
                arguments, width = buffers.arguments(step), min(kernel.blocks, 7)
                form.launch(stream, kernel, arguments, width, Control(counter))
                ask(driver.cuStreamSynchronize(stream))
                launches += 1
    memory.free()
    return launches


def main(networks: Sequence[str]) -> None:
    """Run the networks on the first GPU."""
    found = gpu(0)
    device = CudaDevice(found, found.whole(), counting=True)
    for network in networks:
        print(network, run(device, models.load(network, found.arch)), "launches", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
