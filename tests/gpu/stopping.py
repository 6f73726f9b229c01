"""A yield form that a test launches and stops by hand, without a session."""

from __future__ import annotations

import time

import numpy as np

from miriam.devices.cuda.buffers import Buffers
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.memory import Memory, download, upload
from miriam.devices.cuda.patience import wait_for
from miriam.elastic.launch import Control
from miriam.kernels import Program

_OPEN = 0xFFFF_FFFF
_WIDTH = 512
"""Words of a row of control words that are filled at once, of which the step's is the first."""


class Stopper:
    """The only step of ``program``, which works on its buffer x in place, on ``width`` blocks."""

    def __init__(self, device: CudaDevice, program: Program, width: int) -> None:
        device.world.enter()
        device.kernels.load([program])
        (self._step,) = program.steps
        self._width, self._memory = width, Memory()
        buffers = Buffers(program, {}, self._memory)
        self._arguments = buffers.arguments(self._step)
        self._x = self._arguments[0].value
        self._size = program.buffer("x").size
        self._form = device.kernels.forms(self._step, self._step.kernel.threads)[0]
        self._stream, self._side = device.world.stream(0), device.world.stream(-5)
        self._ended = ask(driver.cuEventCreate(0))
        self._words = self._memory.device(4 + 4 * _WIDTH)
        self._runs = self._memory.device(4 * self._step.kernel.blocks)
        kernel = self._step.kernel
        self._block = kernel.block.x, kernel.block.y, kernel.block.z
        self._start = np.random.default_rng(5).standard_normal(self._size, dtype=np.float32)
        upload(self._x, self._start)
        device.kernels.original(self._step).launch(
            self._stream, (kernel.grid.x, 1, 1), self._block, self._arguments
        )
        self.wait()
        self._expected = download(self._x, self._size, "float32")

    def prepare(self) -> None:
        """From the beginning: nothing has run."""
        upload(self._x, self._start)
        ask(driver.cuMemsetD32(self._words, 0, 1))
        ask(driver.cuMemsetD32(self._runs, 0, self._step.kernel.blocks))

    def launch(self) -> None:
        """Run what is left, until it is stopped."""
        kernel = self._step.kernel
        ask(driver.cuMemsetD32(self._words + 4, _OPEN, 1))
        control = Control(self._words, self._words + 4, runs=self._runs)
        self._form.launch(self._stream, kernel, self._arguments, self._width, control)
        ask(driver.cuEventRecord(self._ended, self._stream))

    def stop(self) -> float:
        """Ask all blocks to leave, and wait for it; how long that took, in s."""
        began = time.perf_counter()
        ask(driver.cuMemsetD32Async(self._words + 4, 0, _WIDTH, self._side))
        wait_for(self._ended, 10.0)
        return time.perf_counter() - began

    def wait(self) -> None:
        """Until the launch has ended by itself."""
        ask(driver.cuStreamSynchronize(self._stream))

    def finished(self) -> bool:
        """Whether every logical block has been claimed."""
        return int(download(self._words, 1, "uint32")[0]) >= self._step.kernel.blocks

    def check(self) -> None:
        """Every block ran once, and x is what the original makes of it."""
        runs = download(self._runs, self._step.kernel.blocks, "int32")
        assert (runs == 1).all(), f"{(runs != 1).sum()} blocks, {runs.min()} to {runs.max()} times"
        found = download(self._x, self._size, "float32")
        assert found.tobytes() == self._expected.tobytes()
