"""CifarNet, GRU and LSTM: every kernel is a single block."""

from __future__ import annotations

from miriam.kernels import Program
from miriam.models.tango import loops
from miriam.models.tango.net import Launch, Net
from miriam.models.tango.pipes import Loop, strided

_F, _D = 4, 8
_BLOCK = (32, 32)


def cifarnet(name: str, arch: str) -> Program:
    """32x32x3 in, 9 values out, fp64; 8 launches of one block."""
    net = Net(name, arch, "float64", (3, 32, 32))
    net.add("conv1", _convolution("cn.ExecuteFirstLayer", 143 / 15, 32, 3, 32))
    net.add("pool1", _pool("cn.pooling1", 32, 32))
    net.add("conv2", _convolution("cn.ExecuteSecondLayer", 91 / 5, 16, 32, 32))
    net.add("pool2", _pool("cn.pooling2", 32, 16))
    net.add("conv3", _convolution("cn.ExecuteThirdLayer", 91 / 5, 8, 32, 64))
    net.add("pool3", _pool("cn.pooling3", 64, 8))
    net.add("fc4", _dense("cn.ExecuteFourthLayer", 64, 64, 1024))
    net.add("fc5", _dense("cn.ExecuteFifthLayer", 32, 9, 64))
    return net.build()


def gru(name: str, arch: str) -> Program:
    """Hidden size 100, fp32; a launch of one 10x10 block per step of two."""
    net = Net(name, arch, "float32", (2,))
    for step in range(2):
        net.add(f"cell.{step}.gates", _gru())
    return net.build()


def lstm(name: str, arch: str) -> Program:
    """Hidden size 100, fp64; both steps and the dense head in one launch of 100 threads.

    The head is summed by one thread, twice: its 200 products in a row count for the block.
    """
    net = Net(name, arch, "float64", (2,))
    net.add(
        "cell",
        Launch(
            "lstm.ExecuteLSTM",
            1,
            (100, 1),
            loops.lstm_gates(strided((100, 1), _D)),
            400 + 200 / 4,
            2,
            region_bytes=0,
            input_bytes=2 * _D,
            weights=4 * (100 * 100 + 2 * 100) + 101,
        ),
    )
    return net.build()


def _convolution(kernel: str, instructions: float, side: int, channels: int, out: int) -> Launch:
    """5x5 taps; a warp is a column, and those beyond the image only count."""
    sectors = strided((side, 1), 32 * 4 if channels == 3 else side * _D)
    plane = channels * side * side * _D
    return Launch(
        kernel,
        1,
        _BLOCK,
        loops.fp64_taps(instructions, sectors),
        25 * channels * out,
        out * side * side,
        region_bytes=plane,
        input_bytes=plane,
        weights=25 * channels * out,
        passes=out,
        warps=side,
    )


def _pool(kernel: str, channels: int, side: int) -> Launch:
    """3x3 taps at stride 2: every other warp works, on every other row."""
    plane = channels * side * side * _D
    return Launch(
        kernel,
        1,
        _BLOCK,
        loops.fp64_pool(side / 2),
        9 * channels,
        channels * side * side // 4,
        region_bytes=plane,
        input_bytes=plane,
        warps=side // 2,
    )


def _dense(kernel: str, threads: int, outputs: int, inputs: int) -> Launch:
    """A thread per output; neighbours read rows that lie far apart."""
    return Launch(
        kernel,
        1,
        (threads, 1),
        loops.fp64_dot(strided((outputs, 1), inputs * _D)),
        inputs,
        outputs,
        region_bytes=inputs * _D,
        input_bytes=inputs * _D,
        weights=inputs * outputs,
    )


def _gru() -> Launch:
    """300 products a thread: two gates', then the candidate's with the reset state."""
    sectors = strided((10, 10), 10 * _F, _F)
    gates, state = loops.gru_gates(sectors), loops.gru_state(sectors)
    both = Loop(
        (2 * gates.instructions + state.instructions) / 3,
        (*gates.loads, *(load / 3 for load in state.loads[1:])),
    )
    return Launch(
        "gru.GPU_forward_pass_gru",
        1,
        (10, 10),
        both,
        300,
        100,
        region_bytes=100 * _F,
        input_bytes=100 * _F,
        weights=3 * (100 * 100 + 2 * 100),
    )
