"""Runs any logical blocks of any step of a program on the CPU: the oracle for every transform."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miriam.devices.arrays import check_arrays
from miriam.devices.contract import Arrays
from miriam.devices.host.build import Builder, default_cache_dir, load_library
from miriam.devices.host.kernel import HostKernel
from miriam.devices.host.runtime import Launch, Memory, Runtime, process_runtime
from miriam.devices.host.slices import elastic_file, slice_entries
from miriam.elastic import IndexFunction
from miriam.elastic.launch import LAUNCH_BYTES, launch_bytes
from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import Argument, Buffer, Pointer, Program, Step

_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_SCALARS = {"int32": "i4", "float32": "f4"}  # as describe() in shim/entry.hpp has them


class Host:
    """The CPU of this machine as a place where kernels run.

    ``workers``: OS threads that run blocks, by default one per core. ``seed`` fixes the order
    of the blocks, and that of the threads of a block between two barriers. ``cache_dir`` keeps
    compiled objects (default ``$MIRIAM_CACHE_DIR/host`` or ``~/.cache/miriam/host``).
    MissingCapabilityError without g++ 12 or later.
    """

    def __init__(
        self, *, workers: int | None = None, seed: int = 0, cache_dir: Path | None = None
    ) -> None:
        if workers is not None and workers < 1:
            raise UsageError("host workers", "at least 1", workers)
        self.workers = workers or len(os.sched_getaffinity(0))
        self.seed = seed
        self._builder = Builder(cache_dir or default_cache_dir())
        self._runtime = process_runtime(self._builder.runtime)

    def load(
        self,
        program: Program,
        weights: Arrays,
        *,
        elastic: bool = False,
        index: IndexFunction = "computed",
    ) -> HostProgram:
        """Compile ``program`` and take a read-only copy of ``weights``, one per weight buffer.

        ``elastic``: the slice forms too, for ``HostRequest.run_slice``; ``index``: how folded ones
        find a thread's coordinates. UsageError for weights or arguments that do not fit, and for
        kernels without source; SourceError where g++ refuses; errors of ``slice_entries``.
        """
        for step in program.steps:
            if not step.kernel.source:
                raise UsageError(
                    f"program {program.name} step {step.name}",
                    "a kernel with source, to be run on the host",
                    step.kernel.name,
                    "simulator only: choose --device sim:<gpu>, without computing outputs",
                )
        check_arrays(f"program {program.name} weight", program.named("weight"), weights)
        kernels = self._compile_all(_names(program))
        slices = self._slices(program, index) if elastic else ()
        return HostProgram(self, self._runtime, program, weights, kernels, slices)

    def compile(
        self, path: Path, names: Sequence[str], source: str | None = None
    ) -> dict[str, HostKernel]:
        """The kernels ``names`` (name expressions) of a CUDA C++ file, to be launched directly.

        ``source``: text that stands for the file. SourceError where g++ refuses the text,
        UsageError where it refuses a name.
        """
        library = load_library(self._builder.kernels(path, names, source), str(path))
        return {n: HostKernel(self._runtime, library, i, n) for i, n in enumerate(names)}

    def memory(self, buffers: Sequence[Buffer], guard_bytes: int) -> Memory:
        """Memory for kernels that are launched directly; ``guard_bytes`` around each fault."""
        return Memory(self._runtime, buffers, guard_bytes)

    def _slices(
        self, program: Program, index: IndexFunction
    ) -> tuple[Mapping[int, HostKernel], ...]:
        """The slice forms of each step, by threads."""
        entries = slice_entries(program)
        names: dict[str, set[str]] = {}
        for step, found in zip(program.steps, entries, strict=True):
            names.setdefault(step.kernel.source, set()).update(found.values())
        wanted = {source: sorted(found) for source, found in names.items() if found}
        made = self._compile_all(wanted, {s: elastic_file(s, index).source for s in wanted})
        return tuple(
            {threads: made[step.kernel.source, name] for threads, name in found.items()}
            for step, found in zip(program.steps, entries, strict=True)
        )

    def _compile_all(
        self, names: Mapping[str, Sequence[str]], texts: Mapping[str, str] | None = None
    ) -> dict[tuple[str, str], HostKernel]:
        """The kernels ``names`` of each source file; ``texts`` stand for files."""
        given = texts or {}
        with ThreadPoolExecutor(self.workers) as pool:
            built = pool.map(lambda s: self.compile(Path(s), names[s], given.get(s)), names)
        made = zip(names, built, strict=True)
        return {(source, name): k for source, found in made for name, k in found.items()}


class HostProgram:
    """A compiled program and its weights, which all of its requests share."""

    def __init__(
        self,
        host: Host,
        runtime: Runtime,
        program: Program,
        weights: Arrays,
        kernels: Mapping[tuple[str, str], HostKernel],
        slices: Sequence[Mapping[int, HostKernel]],
    ) -> None:
        self.host, self.program = host, program
        self._runtime = runtime
        used = [(s.kernel.source, s.kernel.name) for s in program.steps]
        self._kernels = [kernels[key] for key in used]
        self._slices = slices or [{} for _ in used]
        for step, kernel in zip(program.steps, self._kernels, strict=True):
            _check_signature(program, step, kernel.signature)
        buffers = program.named("weight")
        self._weights = Memory(runtime, buffers)
        for buffer in buffers:
            np.copyto(self._weights.view(buffer.name), weights[buffer.name])
        self._weights.make_read_only()

    def request(self) -> HostRequest:
        """A request with buffers and counters of its own; its buffers hold NaN until written."""
        return HostRequest(
            self.host, self._runtime, self.program, self._weights, self._kernels, self._slices
        )


class HostRequest:
    """One inference: its buffers, and how often each logical block of each step ran."""

    def __init__(
        self,
        host: Host,
        runtime: Runtime,
        program: Program,
        weights: Memory,
        kernels: Sequence[HostKernel],
        slices: Sequence[Mapping[int, HostKernel]],
    ) -> None:
        self._host, self._runtime, self._program, self._weights = host, runtime, program, weights
        self._buffers = {b.name: b for b in program.buffers if b.role != "weight"}
        self._memory = Memory(runtime, tuple(self._buffers.values()))
        self._memory.poison()
        self._runs = tuple(np.zeros(s.kernel.blocks, np.int32) for s in program.steps)
        self._slice = ctypes.create_string_buffer(LAUNCH_BYTES)
        # In front of a step's arguments: the slice form's, which the original is not shown.
        self._arguments = [self._pack(step.args) for step in program.steps]
        self._launches = [self._launch(i, kernel) for i, kernel in enumerate(kernels)]
        self._slices = [
            {threads: self._launch(i, kernel, first=0) for threads, kernel in found.items()}
            for i, found in enumerate(slices)
        ]

    def write(self, inputs: Arrays) -> None:
        """Fill the input buffers, all of them; UsageError for a wrong name, shape or dtype."""
        buffers = self._program.named("input")
        check_arrays(f"program {self._program.name} input", buffers, inputs)
        for buffer in buffers:
            np.copyto(self._memory.view(buffer.name), inputs[buffer.name])

    def run(self, step: int, blocks: range | Sequence[int] | None = None) -> None:
        """Run logical ``blocks`` (linear, x fastest; None: all) of the step with index ``step``.

        ExecutionError when a block breaks the execution model (divergent barrier, deadlock) or
        faults; blocks that then ran to their end are counted, the others are not.
        """
        if not 0 <= step < len(self._launches):
            raise UsageError("step", f"an index below {len(self._launches)}", step)
        count = self._program.steps[step].kernel.blocks
        chosen = _indices(range(count) if blocks is None else blocks)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < count:
            raise UsageError(
                f"step {self._program.steps[step].name} blocks",
                f"indices below {count}",
                (int(chosen.min()), int(chosen.max())),
            )
        self._runtime.launch(Launch.from_buffer_copy(self._launches[step]), chosen)

    def run_slice(self, step: int, start: int, count: int, threads: int = 0) -> None:
        """Run ``count`` logical blocks from ``start`` on with the slice form of the step's kernel.

        ``threads``: those of a physical block, of one of the kernel's variants; 0 for the
        original's. UsageError for a step that was loaded without it or has no such blocks;
        ExecutionError as ``run``.
        """
        spec = self._program.steps[step]
        forms, kernel = self._slices[step], spec.kernel
        if not forms:
            raise UsageError(f"step {spec.name}", "loaded as elastic", spec.rigid or "original")
        if not (start >= 0 and 0 < count <= kernel.blocks - start):
            rule = f"blocks below {kernel.blocks}"
            raise UsageError(f"step {spec.name} slice", rule, (start, count))
        form = kernel.variant(threads or kernel.threads)
        self._slice.raw = launch_bytes(kernel.grid, start, count, block=kernel.block)
        launch = Launch.from_buffer_copy(forms[form.threads])
        launch.grid = (count, 1, 1)
        if form.fold > 1:
            launch.block = (form.threads, 1, 1)
        launch.runs = self._runs[step][start:].ctypes.data
        self._runtime.launch(launch, np.arange(count, dtype=np.int64))

    def run_all(self) -> None:
        """Run all logical blocks of all steps, step by step."""
        for step in range(len(self._launches)):
            self.run(step)

    def read(self, buffer: str) -> NDArray[np.generic]:
        """A copy of a buffer, weights included; UnknownNameError if there is none."""
        if buffer in self._buffers:
            return self._memory.view(buffer).copy()
        known = [b.name for b in self._program.buffers]
        if buffer not in known:
            raise UnknownNameError(f"program {self._program.name} buffer", buffer, known)
        return self._weights.view(buffer).copy()

    def outputs(self) -> dict[str, NDArray[np.generic]]:
        """Copies of all output buffers."""
        return {b.name: self.read(b.name) for b in self._program.named("output")}

    def runs(self) -> tuple[NDArray[np.int32], ...]:
        """How often each logical block ran so far: one array per step, a copy."""
        return tuple(counts.copy() for counts in self._runs)

    def _launch(self, index: int, kernel: HostKernel, first: int = 1) -> Launch:
        """A launch of step ``index`` whose parameters begin at ``first`` of its arguments."""
        step = self._program.steps[index]
        spec = step.kernel
        return kernel.prepare(
            f"{spec.name} (step {step.name})",
            spec.grid,
            spec.block,
            ctypes.addressof(self._arguments[index][0]) + first * _POINTER_BYTES,
            self._runs[index],
            shared_bytes=spec.dynamic_shared_bytes,
            workers=self._host.workers,
            seed=(self._host.seed << 16) + index,
        )

    def _pack(self, args: Sequence[Argument]) -> tuple[ctypes.Array[ctypes.c_void_p], object]:
        """The array of addresses of the argument values, and what keeps the values alive."""
        values = [self._slice, *(self._value(arg) for arg in args)]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        return pointers, values

    def _value(self, arg: Argument) -> ctypes.c_void_p | ctypes.c_int32 | ctypes.c_float:
        if not isinstance(arg, Pointer):
            if arg.dtype == "int32":
                return ctypes.c_int32(int(arg.value))
            return ctypes.c_float(arg.value)
        memory = self._memory if arg.buffer in self._buffers else self._weights
        buffer = self._program.buffer(arg.buffer)
        return ctypes.c_void_p(
            memory.address(arg.buffer) + arg.offset * (buffer.bytes // buffer.size)
        )


def _names(program: Program) -> dict[str, list[str]]:
    """The kernels that each source file of ``program`` has to give."""
    names: dict[str, set[str]] = {}
    for step in program.steps:
        names.setdefault(step.kernel.source, set()).add(step.kernel.name)
    return {source: sorted(found) for source, found in names.items()}


def _indices(blocks: range | Sequence[int]) -> NDArray[np.int64]:
    if isinstance(blocks, range):
        return np.arange(blocks.start, blocks.stop, blocks.step, dtype=np.int64)
    return np.asarray(blocks, np.int64).reshape(-1)


def _check_signature(program: Program, step: Step, signature: tuple[str, ...]) -> None:
    got = tuple("p8" if isinstance(a, Pointer) else _SCALARS[a.dtype] for a in step.args)
    if got != signature:
        raise UsageError(
            f"program {program.name} step {step.name} args",
            f"the parameters of {step.kernel.name}, {' '.join(signature)} (kind, bytes)",
            " ".join(got),
        )
