"""A kernel that breaks the execution model is an error that says where, never a hang or a crash."""

from __future__ import annotations

import faulthandler

import numpy as np
import pytest

from miriam.devices.host import Host, HostRequest
from miriam.errors import ExecutionError
from miriam.kernels import Buffer, Dim3
from tests.kernels.programs import FOLDER, single, two_steps, two_steps_inputs

SOURCE = FOLDER / "faults.cu"


def request(name: str, threads: int = 64, blocks: int = 1) -> HostRequest:
    buffers = [Buffer("out", (64,), "output", "int32")]
    grid, block = Dim3(blocks), Dim3(threads)
    program = single(SOURCE, name, buffers, grid=grid, block=block)
    return Host(workers=1).load(program, {}).request()


@pytest.mark.parametrize(
    ("name", "threads", "message"),
    [
        (
            "divergent",
            64,
            f"block (0, 0, 0): divergent barrier: thread (0, 0, 0) and 31 more at the barrier "
            f"{SOURCE}:4, thread (32, 0, 0) and 31 more at the barrier {SOURCE}:6",
        ),
        (
            "deadlock",
            32,
            f"block (0, 0, 0): deadlock: thread (0, 0, 0) and 30 more at the warp collective "
            f"{SOURCE}:15, thread (3, 0, 0) at the barrier {SOURCE}:13",
        ),
        (
            "foreign_mask",
            8,
            f"thread (4, 0, 0) is not in the mask that it passes at {SOURCE}:20",
        ),
        ("overrun", 4, "thread (2, 0, 0): invalid or misaligned memory access at 0x"),
        ("overflow", 1, "thread (0, 0, 0): stack overflow, a thread has 64 KiB"),
        ("failed_assertion", 1, "thread (0, 0, 0): trap or failed assertion (Aborted)"),
    ],
)
def test_faults_are_reported(name: str, threads: int, message: str) -> None:
    failing = request(name, threads)
    with pytest.raises(ExecutionError) as caught:
        failing.run(0)
    assert str(caught.value).startswith(f"kernel {name} (step {name}), block (0, 0, 0): ")
    assert message in str(caught.value)
    assert failing.runs()[0].tolist() == [0]


def test_division_by_zero_is_reported_where_the_processor_traps() -> None:
    buffers = [Buffer("out", (1,), "input", "int32")]
    failing = Host().load(single(SOURCE, "division", buffers), {}).request()
    failing.write({"out": np.array([1], np.int32)})
    failing.run(0)
    failing.write({"out": np.array([0], np.int32)})
    try:
        failing.run(0)
    except ExecutionError as error:
        assert "thread (0, 0, 0): integer division by zero" in str(error)


def test_the_blocks_before_the_fault_are_counted_and_the_request_can_go_on() -> None:
    failing = request("second_block_diverges", threads=2, blocks=8)
    with pytest.raises(ExecutionError, match=r"block \(5, 0, 0\): divergent barrier"):
        failing.run(0, [0, 1, 5])
    assert failing.runs()[0][5] == 0
    failing.run(0, [6])
    assert failing.runs()[0][6] == 1
    assert failing.read("out")[6] == 1


def test_faults_are_caught_beside_other_handlers() -> None:
    was_enabled = faulthandler.is_enabled()
    faulthandler.enable()
    try:
        with pytest.raises(ExecutionError, match="memory access"):
            request("overrun", 4).run(0)
    finally:
        if not was_enabled:
            faulthandler.disable()


def test_weights_are_read_only() -> None:
    program = two_steps()
    weight = Buffer("x", program.buffer("x").shape, "weight")
    buffers = (weight, *program.buffers[1:])
    swapped = type(program)("writes", "sm_90", program.steps, buffers)
    weights = {"x": two_steps_inputs(0)["x"], "scale": two_steps_inputs(1)["x"]}
    with pytest.raises(ExecutionError, match="memory access"):
        Host().load(swapped, weights).request().run(0)
