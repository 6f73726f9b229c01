"""ResNet-50 as in torchvision (the stride sits on the 3x3 convolution), with a softmax.

He et al., "Deep Residual Learning for Image Recognition", arXiv 1512.03385. Batch norms are
folded into the convolutions. A stage has one buffer for its result: each block's last
convolution adds to it in place, so that running one of its logical blocks twice shows.
"""

from __future__ import annotations

from miriam.models.builder import Builder, View
from miriam.models.layers import conv, dense, global_average_pool, max_pool, softmax

_BLOCKS = (3, 4, 6, 3)


def define(net: Builder) -> None:
    """A 224x224 image in, 1,000 probabilities out."""
    x = net.input(3, 224, 224)
    x = conv(net, x, "conv1", 64, kernel=7, stride=2, padding=3, layer="relu")
    x = max_pool(net, x, "maxpool", kernel=3, stride=2, padding=1)
    for stage, blocks in enumerate(_BLOCKS):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _bottleneck(net, x, f"layer{stage + 1}.{block}", 64 << stage, stride, block == 0)
    x = global_average_pool(net, x, "avgpool")
    x = dense(net, x, "fc", 1000, into=net.output(1000))
    softmax(net, x, "softmax")


def norm_of(conv_name: str) -> str | None:
    """The batch norm that follows a convolution in torchvision's ResNet; None after ``fc``."""
    if conv_name.endswith("downsample.0"):
        return conv_name[:-1] + "1"
    head, found, number = conv_name.rpartition("conv")
    return f"{head}bn{number}" if found else None


def _bottleneck(
    net: Builder, x: View, name: str, width: int, stride: int, downsample: bool
) -> View:
    """1x1 down, 3x3, 1x1 up, added to the input or to its projection.

    torchvision reuses one ``relu`` module; here the fused ones are called relu1 and relu2.
    """
    shortcut = x
    if downsample:
        layer = f"{name}.downsample"
        shortcut = conv(net, x, f"{layer}.0", 4 * width, 1, stride, layer=layer, relu=False)
    y = conv(net, x, f"{name}.conv1", width, 1, layer=f"{name}.relu1")
    y = conv(net, y, f"{name}.conv2", width, 3, stride, padding=1, layer=f"{name}.relu2")
    return conv(net, y, f"{name}.conv3", 4 * width, 1, layer=name, into=shortcut, accumulate=True)
