"""Runs the generator's output on a real GPU: same bits, what it costs, how fast it yields.

For every step of our networks, with seeded weights and inputs:

- *bits*: slices and persistent blocks (1, 7, a full GPU), on all threads, a half and a quarter, and
  the yield form, stopped again and again at random moments by a word that another stream writes,
  leave the same bytes in every buffer as the original, in-place steps included;
- *cost*: time of the yield form with open words, full residency, against the original;
- *yield*: from the write of the word to the last block gone, GPU filled by the step.

    python -m benchmarks.elastic_gpu OUT.json [BOUND]     needs a GPU, miriam-gpu[cuda,elastic]

BOUND is what the elastic forms are compiled for: `original` (the blocks of the original that one
SM holds, the default), a number of blocks, or `none`.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver

from benchmarks.gpu import Memory, Modules, World, about, ask, begin, launch, quantile
from miriam import elasticize, models
from miriam.compile import compile_source
from miriam.elastic.launch import LAUNCH_BYTES, Control, launch_bytes
from miriam.kernels import Program, Step

FORMS = ("slice", "persistent", "yield")
OPEN = 2**32 - 1
REPEAT = 10
WORLDS = (None, 32, 16, 8)


class ElasticModules:
    """The elastic forms of the networks' kernels, for this GPU."""

    def __init__(self, programs: Sequence[Program], arch: str, plain: Modules, bound: str) -> None:
        kernels = {(s.kernel.source, s.kernel.name): s.kernel for p in programs for s in p.steps}
        self._functions: dict[tuple[str, str, str, int], Any] = {}
        files = {source: elasticize(Path(source), arch=arch) for source, _ in kernels}
        for (source, name), spec in kernels.items():
            made = files[source]
            blocks = plain.resident_blocks(source, name) if bound == "original" else bound
            defines = [] if bound == "none" else [f"MIRIAM_RESIDENT_BLOCKS={blocks}"]
            entries = {
                (form, variant.threads): made.kernel(name).entry(
                    form, name, variant.fold, spec.block
                )
                for variant in spec.variants
                for form in FORMS
            }
            names = list(entries.values())
            compiled = compile_source(made.source, source, names, arch, defines=defines)
            module = ask(driver.cuModuleLoadData(compiled.cubin))
            for (form, threads), entry in entries.items():
                symbol = compiled.lowered[entry].encode()
                function = ask(driver.cuModuleGetFunction(module, symbol))
                self._functions[source, name, form, threads] = function

    def function(self, step: Step, form: str, threads: int) -> Any:
        """The loaded function of one form on ``threads`` threads."""
        return self._functions[step.kernel.source, step.kernel.name, form, threads]


class Bench:
    """One network in one world: its buffers and its forms."""

    def __init__(
        self, program: Program, world: World, plain: Modules, elastic: ElasticModules
    ) -> None:
        self.program, self._world = program, world
        self._plain, self._elastic = plain, elastic
        self.memory = Memory(program)
        self.stream, self._side = world.stream(-1), world.stream(-5)
        self._words = int(ask(driver.cuMemAlloc(4 * (REPEAT + 1))))
        self.counter, self.quota = self._words + 4, self._words
        self._saved = int(ask(driver.cuMemAlloc(self.memory.bytes)))
        self._random = random.Random(1)

    def fill(self) -> None:
        """Seeded weights and inputs."""
        arrays = {**models.weights(self.program.name), **models.example_input(self.program.name)}
        for name, array in arrays.items():
            data = np.ascontiguousarray(array)
            ask(driver.cuMemcpyHtoD(self.memory.address(name), data.ctypes.data, data.nbytes))

    def original(self, step: Step, stream: Any = None) -> None:
        """Launch the original kernel."""
        kernel = step.kernel
        launch(
            self._plain.function(kernel.source, kernel.name),
            (kernel.grid.x, kernel.grid.y, kernel.grid.z),
            (kernel.block.x, kernel.block.y, kernel.block.z),
            kernel.dynamic_shared_bytes,
            stream or self.stream,
            [self.memory.argument(a) for a in step.args],
        )

    def form(
        self,
        step: Step,
        form: str,
        blocks: int,
        start: int,
        count: int,
        counter: int = 0,
        threads: int = 0,
    ) -> None:
        """Launch an elastic form on ``blocks`` physical blocks; ``threads`` 0: the original's."""
        kernel = step.kernel
        control = Control(counter or self.counter, self.quota)
        words = launch_bytes(kernel.grid, start, count, control, block=kernel.block)
        whole = (kernel.block.x, kernel.block.y, kernel.block.z)
        launch(
            self._elastic.function(step, form, threads or kernel.threads),
            (blocks, 1, 1),
            (threads, 1, 1) if threads else whole,
            kernel.dynamic_shared_bytes,
            self.stream,
            [
                (ctypes.c_char * LAUNCH_BYTES).from_buffer_copy(words),
                *(self.memory.argument(a) for a in step.args),
            ],
        )

    def full(self, step: Step) -> int:
        """Physical blocks of the yield form that fill the world, no more than there is work."""
        per_sm = ask(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self._elastic.function(step, "yield", step.kernel.threads),
                step.kernel.threads,
                step.kernel.dynamic_shared_bytes,
            )
        )
        return int(min(step.kernel.blocks, per_sm * self._world.sms))

    def wait(self) -> None:
        """Until the stream is empty."""
        ask(driver.cuStreamSynchronize(self.stream))

    def state(self) -> bytes:
        """All buffers but the weights."""
        self.wait()
        data = np.empty(self.memory.bytes, np.uint8)
        ask(driver.cuMemcpyDtoH(data.ctypes.data, self.memory.base, self.memory.bytes))
        return data.tobytes()

    def save(self) -> None:
        """Keep the buffers for `restore`."""
        ask(driver.cuMemcpyDtoD(self._saved, self.memory.base, self.memory.bytes))

    def restore(self) -> None:
        """Put the buffers back."""
        ask(driver.cuMemcpyDtoD(self.memory.base, self._saved, self.memory.bytes))

    def write(self, address: int, value: int) -> None:
        """Set a word now."""
        ask(driver.cuMemsetD32(address, value, 1))

    def read_counter(self) -> int:
        """How many logical blocks were claimed, clamped by the caller."""
        data = np.zeros(1, np.uint32)
        ask(driver.cuMemcpyDtoH(data.ctypes.data, self.counter, 4))
        return int(data[0])

    def yielding(self, step: Step, stops: int) -> int:
        """Run the yield form, stopped at up to ``stops`` random moments; how often it stopped."""
        self.write(self.counter, 0)
        # Few enough blocks that each has to claim again and again.
        width = min(self.full(step), max(1, step.kernel.blocks // 8))
        stopped = 0
        while True:
            stopping = stopped < stops
            self.write(self.quota, OPEN)
            self.form(step, "yield", width, 0, step.kernel.blocks)
            if stopping:
                until = time.perf_counter() + self._random.random() * 60e-6
                while time.perf_counter() < until:
                    pass
                ask(driver.cuMemsetD32Async(self.quota, 0, 1, self._side))
                ask(driver.cuStreamSynchronize(self._side))
            self.wait()
            if self.read_counter() >= step.kernel.blocks:
                return stopped
            stopped += 1

    def _partings(self, step: Step) -> dict[str, list[tuple[str, int, int, int]]]:
        """Ways to run a step without stopping: form, physical blocks, start and count of each."""
        blocks = step.kernel.blocks
        half = blocks // 2
        slices = [("slice", half, 0, half), ("slice", blocks - half, half, blocks - half)]
        widths = {"1": 1, "7": 7, "full": self.full(step)}
        return {
            "slice": slices[not half :],
            **{f"persistent/{n}": [("persistent", w, 0, blocks)] for n, w in widths.items()},
        }

    def compare(self, stops: int) -> dict[str, Any]:
        """Every form of every step against the original, along the whole network."""
        self.fill()
        different, stopped = [], 0
        for step in self.program.steps:
            self.save()
            self.original(step)
            expected = self.state()
            for name, ranges in self._partings(step).items():
                for threads in (0, *(v.threads for v in step.kernel.variants[1:])):
                    self.restore()
                    for form, width, start, count in ranges:
                        self.form(step, form, width, start, count, threads=threads)
                    if self.state() != expected:
                        different.append(f"{step.name} {name} on {threads or 'all'} threads")
            self.restore()
            stopped += self.yielding(step, stops)
            if self.state() != expected:
                different.append(f"{step.name} yield")
        return {"steps": len(self.program.steps), "stopped": stopped, "different": different}

    def timed_us(self, work: Callable[[], None]) -> float:
        """Median time of ``work`` captured in a graph."""
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        ask(driver.cuStreamBeginCapture(self.stream, mode))
        work()
        graph = ask(driver.cuStreamEndCapture(self.stream))
        executable = ask(driver.cuGraphInstantiate(graph, 0))
        first, last = ask(driver.cuEventCreate(0)), ask(driver.cuEventCreate(0))
        times = []
        for _ in range(12):
            ask(driver.cuMemsetD32Async(self.counter, 0, REPEAT, self.stream))
            ask(driver.cuEventRecord(first, self.stream))
            ask(driver.cuGraphLaunch(executable, self.stream))
            ask(driver.cuEventRecord(last, self.stream))
            self.wait()
            times.append(ask(driver.cuEventElapsedTime(first, last)) * 1e3)
        return quantile(times[2:], 0.5)

    def cost(self, step: Step) -> dict[str, Any]:
        """The original's time and the yield form's, alone, words open; us for one launch."""
        self.write(self.quota, OPEN)
        blocks, width = step.kernel.blocks, self.full(step)

        def originals() -> None:
            for _ in range(REPEAT):
                self.original(step)

        def elastics() -> None:
            for i in range(REPEAT):
                self.form(step, "yield", width, 0, blocks, self.counter + 4 * i)

        original_us, elastic_us = self.timed_us(originals), self.timed_us(elastics)
        return {
            "step": step.name,
            "blocks": blocks,
            "width": width,
            "original_us": round(original_us / REPEAT, 2),
            "yield_us": round(elastic_us / REPEAT, 2),
        }

    def latencies_us(self, step: Step, samples: int) -> list[float]:
        """From the write of the word to the end of a launch that fills the GPU."""
        written, gone = ask(driver.cuEventCreate(0)), ask(driver.cuEventCreate(0))
        found: list[float] = []
        for _ in range(samples):
            self.write(self.counter, 0)
            self.write(self.quota, OPEN)
            # As many logical blocks as it takes to still run when the word is written.
            self.form(step, "yield", self.full(step), 0, step.kernel.blocks)
            ask(driver.cuEventRecord(gone, self.stream))
            ask(driver.cuMemsetD32Async(self.quota, 0, 1, self._side))
            ask(driver.cuEventRecord(written, self._side))
            self.wait()
            ask(driver.cuStreamSynchronize(self._side))
            if self.read_counter() < step.kernel.blocks:
                found.append(ask(driver.cuEventElapsedTime(written, gone)) * 1e3)
        return found


def main() -> None:
    """Compare on the whole GPU, then time in every world."""
    device, primary, arch = begin()
    programs = {name: models.load(name, arch) for name in models.NAMES}
    plain = Modules(list(programs.values()), arch)
    bound = sys.argv[2] if len(sys.argv) > 2 else "original"
    elastic = ElasticModules(list(programs.values()), arch, plain, bound)
    report: dict[str, Any] = {**about(device), "bound": bound, "bits": {}, "cost": []}
    report["yields"] = []
    whole = World(device, primary, None)
    for name, program in programs.items():
        report["bits"][name] = Bench(program, whole, plain, elastic).compare(stops=20)
        print(name, report["bits"][name], flush=True)
    for sms in WORLDS:
        world = World(device, primary, sms)
        for name in ("alexnet", "squeezenet", "resnet50", "cifarnet"):
            bench = Bench(programs[name], world, plain, elastic)
            bench.fill()
            rows = [bench.cost(s) for s in {s.name: s for s in programs[name].steps}.values()]
            report["cost"] += [{"sms": world.sms, "network": name, **row} for row in rows]
            long = [r for r in rows if r["original_us"] >= 50]
            total = [sum(r[key] for r in rows) for key in ("original_us", "yield_us")]
            ratios = [r["original_us"] / r["yield_us"] for r in long]
            print(world.sms, name, f"whole {total[0] / total[1]:.3f}", end=" ")
            print(f"steps >= 50 us: {len(long)}", f"least {min(ratios, default=0):.3f}", flush=True)
            for step, row in zip(programs[name].steps, rows, strict=True):
                waves = -(-row["blocks"] // row["width"])
                if row["original_us"] < 50 or waves < 2:
                    continue
                found = bench.latencies_us(step, 60)
                if len(found) >= 20:
                    report["yields"].append(
                        {
                            "sms": world.sms,
                            "network": name,
                            "step": step.name,
                            "block_us": round(row["original_us"] / waves, 1),
                            "p50_us": round(quantile(found, 0.5), 1),
                            "p99_us": round(quantile(found, 0.99), 1),
                            "samples": len(found),
                        }
                    )
    for row in report["yields"]:
        print(row, flush=True)
    Path(sys.argv[1]).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
