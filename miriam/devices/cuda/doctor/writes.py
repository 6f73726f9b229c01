"""Ways to write a control word from a graph."""

from __future__ import annotations

import ctypes
from typing import Literal, get_args

from miriam.compile import compile_cubin
from miriam.devices.cuda.capture import Graph, add_write, recording
from miriam.devices.cuda.code import Module
from miriam.devices.cuda.doctor.subject import SOURCE, Subject
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.memory import Memory

Write = Literal["memset", "host copy", "memory-op", "device copy", "kernel"]
WRITES: tuple[Write, ...] = get_args(Write)


class Writer:
    """Records graphs that shut a control word, on the subject's urgent stream."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._memory = Memory()
        self._host_zero, _ = self._memory.host(4)
        self._device_zero = self._memory.device(4)
        self._module = Module(compile_cubin(SOURCE, ["assign"], subject.program.arch))
        self._assign = self._module.function("assign")

    def record(self, write: Write, word: int) -> Graph:
        """A graph that writes 0 to ``word``."""
        stream = self._subject.urgent
        with recording(stream) as graph:
            if write == "memset":
                ask(driver.cuMemsetD32Async(word, 0, 1, stream))
            elif write == "host copy":
                ask(driver.cuMemcpyHtoDAsync(word, self._host_zero, 4, stream))
            elif write == "device copy":
                ask(driver.cuMemcpyDtoDAsync(word, self._device_zero, 4, stream))
            elif write == "memory-op":
                add_write(stream, word, 0)
            else:
                arguments = [ctypes.c_void_p(word), ctypes.c_uint(0)]
                self._assign.launch(stream, (1, 1, 1), (1, 1, 1), arguments)
        graph.upload(stream)
        return graph

    def close(self) -> None:
        """Give it back; nothing of it may be running."""
        self._module.unload()
        self._memory.free()
