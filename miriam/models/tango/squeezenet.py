"""SqueezeNet 1.0, 227x227x3, fp64: a block per column, a thread per row, all channels in turn."""

from __future__ import annotations

from miriam.kernels import Program
from miriam.models.tango import loops
from miriam.models.tango.net import Launch, Net
from miriam.models.tango.pipes import SECTOR_BYTES, WARP, Loop, strided

_D = 8

# Fire modules: side of the image, input channels, channels of squeeze and of each expand.
_FIRES = {
    2: (55, 96, 16, 64),
    3: (55, 128, 16, 64),
    4: (55, 128, 32, 128),
    5: (27, 256, 32, 128),
    6: (27, 256, 48, 192),
    7: (27, 384, 48, 192),
    8: (27, 384, 64, 256),
    9: (13, 512, 64, 256),
}


def build(name: str, arch: str) -> Program:
    """30 launches with 1 to 111 blocks of 13 to 1,000 threads."""
    net = Net(name, arch, "float64", (3, 227, 227))
    net.add("conv1", _first())
    net.add("pool1", _pool("sn.pooling1", 96, 111, 111, 55))
    for number, (side, channels, squeeze, expand) in _FIRES.items():
        fire = f"sn.Executefire{number}"
        net.add(f"fire{number}.squeeze", _point(f"{fire}squeeze1x1", side, channels, squeeze))
        net.add(f"fire{number}.expand1", _point(f"{fire}expand1x1", side, squeeze, expand))
        net.add(f"fire{number}.expand3", _three(f"{fire}expand3x3", side, squeeze, expand))
        if number == 4:
            net.add("pool4", _pool("sn.pooling4", 256, 55, 55, 27))
        if number == 8:
            net.add("pool8", _pool("sn.pooling8", 512, 27, 27, 13))
    net.add("conv10", _point("sn.ExecuteTenthLayer", 15, 512, 1000))
    net.add("average", _average())
    return net.build()


def _first() -> Launch:
    """7x7 taps at stride 2 on three planes of int32."""
    region = 3 * 227 * 2 * SECTOR_BYTES
    return Launch(
        "sn.ExecuteFirstLayer",
        111,
        (111, 1),
        loops.fp64_taps(195 / 21, strided((111, 1), 2 * 227 * 4)),
        96 * 147,
        96 * 111 * 111,
        region_bytes=region,
        input_bytes=3 * 227 * 227 * 4,
        weights=96 * 147,
        block_weights=96 * 147,
        passes=96,
    )


def _point(kernel: str, side: int, channels: int, outputs: int) -> Launch:
    """1x1 convolution; each row of the column is a sector of its own."""
    return Launch(
        kernel,
        side,
        (side, 1),
        loops.fp64_dot(strided((side, 1), side * _D)),
        channels * outputs,
        outputs * side * side,
        region_bytes=channels * side * SECTOR_BYTES,
        input_bytes=channels * side * side * _D,
        weights=channels * outputs,
        block_weights=channels * outputs,
        passes=outputs,
    )


def _three(kernel: str, side: int, channels: int, outputs: int) -> Launch:
    """3x3 convolution; three columns lie in 1.5 sectors per row on average."""
    return Launch(
        kernel,
        side,
        (side, 1),
        loops.fp64_taps(27, strided((side, 1), side * _D)),
        9 * channels * outputs,
        outputs * side * side,
        region_bytes=1.5 * channels * side * SECTOR_BYTES,
        input_bytes=channels * side * side * _D,
        weights=9 * channels * outputs,
        block_weights=9 * channels * outputs,
        passes=outputs,
    )


def _pool(kernel: str, channels: int, grid: int, side: int, outputs: int) -> Launch:
    """3x3 taps at stride 2; every other block and every other thread works: half the turns."""
    plane = 1.5 * channels * side * SECTOR_BYTES
    return Launch(
        kernel,
        grid,
        (grid, 1),
        loops.fp64_pool(strided((grid, 1), side * _D) / 2),
        9 * channels / 2,
        channels * outputs * outputs,
        region_bytes=plane / 2,
        input_bytes=channels * side * side * _D,
    )


def _average() -> Launch:
    """One block, a thread per class, 15 x 16 values each."""
    plane = 1000 * 225 * _D
    return Launch(
        "sn.global_pooling",
        1,
        (1000, 1),
        Loop(73 / 32, (float(WARP),), fp64=1),
        240,
        1000,
        region_bytes=plane,
        input_bytes=plane,
    )
