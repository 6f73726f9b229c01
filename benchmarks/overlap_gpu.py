"""Green contexts that have SMs in common, with kernels in both at once: how often the GPU stops.

``python -m benchmarks.overlap_gpu SECONDS PROCESSES``: so many processes at once keep graphs of
plain kernels going in two contexts of an H200 for so long, first in two that overlap, then in two
that touch. No control, no elastic kernel and no policy is used.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from typing import Any

from miriam.compile import compile_source
from miriam.devices.cuda.capture import Graph, recording
from miriam.devices.cuda.code import Function, Module
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.memory import Memory
from miriam.devices.cuda.world import World, gpu
from miriam.errors import DeviceError

SOURCE = """
extern "C" __global__ void work(float* out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = x * 0.999f + 0.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
"""
CASES = {"overlap": ((0, 24), (0, 32)), "touch": ((0, 24), (24, 32))}
BLOCKS = (8, 64, 300, 1_000)
REQUESTS = 2_000


def graph(world: World, work: Function, out: int, rounds: int) -> tuple[Graph, Any]:
    """Thirty kernels of several sizes, and the stream that runs them."""
    world.enter()
    stream = world.stream(0)
    with recording(stream) as recorded:
        for number in range(30):
            blocks = BLOCKS[number % len(BLOCKS)]
            arguments = [ctypes.c_void_p(out), ctypes.c_int(rounds)]
            work.launch(stream, (blocks, 1, 1), (128, 1, 1), arguments)
    recorded.upload(stream)
    return recorded, stream


def child(case: str, seconds: float) -> None:
    """Both contexts at work until the time is up, one graph in the first and two in the second.

    Graphs and streams are made anew every so often.
    """
    device = gpu(0)
    module = Module(compile_source(SOURCE, "work.cu", ("work",), device.arch))
    work = module.function("work")
    out = Memory().device(4 * max(BLOCKS) * 128)
    left, right = (device.world(*sms) for sms in CASES[case])
    until = time.perf_counter() + seconds
    requests = 0
    while time.perf_counter() < until:
        made = [graph(left, work, out, 500), *(graph(right, work, out, 4_000) for _ in range(2))]
        for _ in range(REQUESTS):
            for recorded, stream in made:
                if driver.cuStreamQuery(stream)[0] != driver.CUresult.CUDA_ERROR_NOT_READY:
                    recorded.launch(stream)
                    requests += 1
        for recorded, stream in made:
            ask(driver.cuStreamSynchronize(stream))
            recorded.destroy()
            ask(driver.cuStreamDestroy(stream))
    print(requests)


def main(seconds: float, processes: int) -> None:
    """Both cases, one after the other."""
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.overlap_gpu", str(seconds), case]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        ended = [(process.communicate(), process.returncode) for process in running]
        failed = [errors.strip().rpartition("\n")[2] for (_, errors), code in ended if code]
        launched = sum(int(said) for (said, _), code in ended if not code)
        print(f"{case}: {len(failed)} of {processes} processes failed, {launched} graphs in others")
        for line in sorted(set(failed)):
            print(f"  {line}")


if __name__ == "__main__":
    if sys.argv[2] in CASES:
        try:
            child(sys.argv[2], float(sys.argv[1]))
        except DeviceError as error:
            sys.exit(str(error))
    else:
        main(float(sys.argv[1]), int(sys.argv[2]))
