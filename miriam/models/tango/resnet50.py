"""ResNet-50, 224x224x3: convolution, batch norm, scale, ReLU and sum are launches of their own.

A block per output channel. Where an image has more than 1,024 pixels, a block of 32x32 threads
makes squares of 4x4 (the first layers) or 2x2 pixels per thread, of which 28x28 threads work.
"""

from __future__ import annotations

from dataclasses import dataclass

from miriam.kernels import Program
from miriam.models.tango import loops
from miriam.models.tango.alexnet import dense
from miriam.models.tango.net import Launch, Net
from miriam.models.tango.pipes import Loop, strided

_F = 4
_BLOCKS = (3, 4, 6, 3)


@dataclass(frozen=True, slots=True)
class _Image:
    """``side`` squared pixels, ``per_thread`` squared of them made by each thread."""

    side: int
    per_thread: int = 1

    @property
    def block(self) -> tuple[int, int]:
        return (32, 32) if self.per_thread > 1 else (self.side, self.side)

    @property
    def warps(self) -> int | None:
        """Those that work; None for all."""
        return self.side // self.per_thread if self.per_thread > 1 else None

    def sectors(self, stride: int = 1, pitch: int = 0) -> float:
        """Of a warp's load of its pixels of an image that is ``pitch`` wide (as this one)."""
        threads = self.side // self.per_thread
        step = stride * self.per_thread * _F
        return strided((threads, threads), step * (pitch or self.side), step)


def build(name: str, arch: str) -> Program:
    """227 launches with 64 to 2,048 blocks of 1 to 1,024 threads."""
    net = Net(name, arch, "float32", (224, 224, 3))
    image = _Image(112, 4)
    net.add("conv1", _first(image))
    _normalise(net, "conv1", 64, image, relu=True)
    net.add("pool1", _pool())
    channels = 64
    for stage, blocks in enumerate(_BLOCKS):
        image = _Image(56, 2) if stage == 0 else _Image(56 >> stage)
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            _bottleneck(net, f"{stage + 2}.{block}", channels, 64 << stage, image, stride)
            channels = 256 << stage
    net.add("average", _average())
    net.add("fc", dense("rn.executeFCLayerCUDA", 1000, 2048))
    return net.build()


def _bottleneck(net: Net, name: str, channels: int, width: int, image: _Image, stride: int) -> None:
    wide = 4 * width
    if channels != wide:
        _convolution(net, f"{name}.shortcut", channels, wide, 1, image, stride, relu=False)
    _convolution(net, f"{name}.a", channels, width, 1, image, stride)
    _convolution(net, f"{name}.b", width, width, 3, image)
    _convolution(net, f"{name}.c", width, wide, 1, image, relu=False)
    net.add(f"{name}.sum", _each("executeEltWiseLayerCUDA", wide, image, 2))
    net.add(f"{name}.relu", _each("executeReLULayerCUDA", wide, image, 1), in_place=True)


def _convolution(
    net: Net,
    name: str,
    channels: int,
    out: int,
    side: int,
    image: _Image,
    stride: int = 1,
    relu: bool = True,
) -> None:
    split = "_split" if image.per_thread > 1 else ""
    inputs = image.side * stride
    read_bytes = channels * inputs * inputs * _F
    launch = Launch(
        f"rn.execute3DconvolutionCuda{split}",
        out,
        image.block,
        loops.taps(side, image.sectors(stride, inputs)),
        image.per_thread**2 * channels * side * side,
        out * image.side**2,
        region_bytes=read_bytes / stride,
        input_bytes=read_bytes / stride,
        weights=out * channels * side * side,
        warps=image.warps,
    )
    net.add(name, launch)
    _normalise(net, name, out, image, relu)


def _normalise(net: Net, name: str, channels: int, image: _Image, relu: bool) -> None:
    norm = loops.batch_norm(image.sectors())
    net.add(f"{name}.bn", _map("executeBnNormLayerCUDA", channels, image, norm, 1), in_place=True)
    net.add(f"{name}.scale", _each("executeScaleLayerCUDA", channels, image, 1), in_place=True)
    if relu:
        net.add(f"{name}.relu", _each("executeReLULayerCUDA", channels, image, 1), in_place=True)


def _each(kernel: str, channels: int, image: _Image, reads: int) -> Launch:
    return _map(kernel, channels, image, loops.elementwise(reads, image.sectors()), reads)


def _map(kernel: str, channels: int, image: _Image, loop: Loop, reads: int) -> Launch:
    """A turn per element."""
    split = "_split" if image.per_thread > 1 else ""
    plane = image.side**2 * _F
    return Launch(
        f"rn.{kernel}{split}",
        channels,
        image.block,
        loop,
        image.per_thread**2,
        channels * image.side**2,
        region_bytes=reads * plane,
        input_bytes=reads * channels * plane,
        warps=image.warps,
    )


def _first(image: _Image) -> Launch:
    """7x7x3 taps at stride 2; the channels of a pixel lie side by side."""
    threads = image.side // image.per_thread
    step = 2 * image.per_thread * 3 * _F
    plane = 224 * 224 * 3 * _F
    return Launch(
        "rn.executeFirstLayerCUDA",
        64,
        image.block,
        loops.rgb(51 / 12, strided((threads, threads), 224 * step, step)),
        image.per_thread**2 * 147,
        64 * image.side**2,
        region_bytes=plane,
        input_bytes=plane,
        weights=64 * 147,
        warps=image.warps,
    )


def _pool() -> Launch:
    """3x3 taps at stride 2, launched as for 112x112: 14x14 threads make 4x4 pixels each."""
    plane = 112 * 112 * _F
    return Launch(
        "rn.executepoolingCuda",
        64,
        (32, 32),
        loops.maximum(3, strided((14, 14), 8 * 112 * _F, 8 * _F)),
        16 * 9,
        64 * 56 * 56,
        region_bytes=plane,
        input_bytes=64 * plane,
        warps=14,
    )


def _average() -> Launch:
    """A block of one thread per channel, 49 values each."""
    return Launch(
        "rn.poolingAverageCUDA",
        2048,
        (1, 1),
        loops.maximum(7, 1.0),
        49,
        2048,
        region_bytes=49 * _F,
        input_bytes=2048 * 49 * _F,
    )
