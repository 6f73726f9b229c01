"""AlexNet with two groups, 227x227x3: a block per output channel, a thread per pixel."""

from __future__ import annotations

from miriam.kernels import Program
from miriam.models.tango import loops
from miriam.models.tango.net import Launch, Net
from miriam.models.tango.pipes import strided

_F = 4

# The 55x55 outputs of the first layers take four launches: rows and columns from 0 and from 32.
_QUARTERS = ((32, 32), (32, 23), (23, 32), (23, 23))

_CONV, _GROUP2 = "an.execute3DconvolutionCuda", "an.execute3Dconvolutiongroup2Cuda"

# Layer, kernel, blocks, side of the output, side of the filter, input channels of a group.
_CONVOLUTIONS = {
    "conv2": ((_CONV, 128, 27, 5, 48), (_GROUP2, 128, 27, 5, 48)),
    "conv3": ((_CONV, 384, 13, 3, 256),),
    "conv4": ((_CONV, 192, 13, 3, 192), (_GROUP2, 192, 13, 3, 192)),
    "conv5": ((_CONV, 128, 13, 3, 192), (_GROUP2, 128, 13, 3, 192)),
}


def build(name: str, arch: str) -> Program:
    """22 launches with 96 to 4,096 blocks of 1 to 1,024 threads."""
    net = Net(name, arch, "float32", (227, 227, 3))
    for i, block in enumerate(_QUARTERS):
        net.add(f"conv1.{i}", _first(block))
    for i, block in enumerate(_QUARTERS):
        net.add(f"norm1.{i}", _norm("an.executelrnNormCuda_split", 96, 55, block))
    net.add("pool1", _pool(96, 27, 55))
    _convolution(net, "conv2")
    net.add("norm2", _norm("an.executelrnNormCuda", 256, 27, (27, 27)))
    net.add("pool2", _pool(256, 13, 27))
    for layer in ("conv3", "conv4", "conv5"):
        _convolution(net, layer)
    net.add("pool5", _pool(256, 6, 13))
    for layer, outputs, inputs in (("fc6", 4096, 9216), ("fc7", 4096, 4096), ("fc8", 1000, 4096)):
        net.add(layer, dense("an.executeFCLayer", outputs, inputs))
    return net.build()


def dense(kernel: str, outputs: int, inputs: int) -> Launch:
    """A block of one thread per output."""
    return Launch(
        kernel,
        outputs,
        (1, 1),
        loops.DENSE,
        inputs,
        outputs,
        region_bytes=_F * inputs,
        input_bytes=_F * inputs,
        weights=outputs * inputs,
    )


def _first(block: tuple[int, int]) -> Launch:
    """11x11x3 taps at stride 4; the channels of a pixel lie side by side."""
    width, height = block
    sectors = strided(block, 4 * 227 * 3 * _F, 4 * 3 * _F)
    region = (4 * width + 7) * (4 * height + 7) * 3 * _F
    return Launch(
        "an.executeFirstLayer",
        96,
        block,
        loops.rgb(121 / 33, sectors),
        363,
        96 * width * height,
        region_bytes=region,
        input_bytes=region,
        weights=96 * 363,
    )


def _convolution(net: Net, layer: str) -> None:
    for group, (kernel, blocks, side, taps, channels) in enumerate(_CONVOLUTIONS[layer]):
        plane = channels * side * side * _F
        launch = Launch(
            kernel,
            blocks,
            (side, side),
            loops.taps(taps, strided((side, side), side * _F, _F)),
            taps * taps * channels,
            blocks * side * side,
            region_bytes=plane,
            input_bytes=plane,
            weights=blocks * channels * taps * taps,
        )
        net.add(f"{layer}.{group}", launch)


def _norm(kernel: str, channels: int, side: int, block: tuple[int, int]) -> Launch:
    """Four neighbours' squares per element."""
    count = block[0] * block[1]
    return Launch(
        kernel,
        channels,
        block,
        loops.neighbour_power(strided(block, side * _F, _F)),
        4,
        channels * count,
        region_bytes=5 * count * _F,
        input_bytes=channels * count * _F,
    )


def _pool(channels: int, side: int, inputs: int) -> Launch:
    """3x3 taps at stride 2."""
    plane = inputs * inputs * _F
    return Launch(
        "an.executepoolingCuda",
        channels,
        (side, side),
        loops.maximum(3, strided((side, side), 2 * inputs * _F, 2 * _F)),
        9,
        channels * side * side,
        region_bytes=plane,
        input_bytes=channels * plane,
    )
