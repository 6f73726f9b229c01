"""SqueezeNet 1.1 as in torchvision, with a softmax.

Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters", arXiv 1602.07360.
"""

from __future__ import annotations

from miriam.models.builder import Builder, View
from miriam.models.layers import conv, global_average_pool, max_pool, relu, softmax


def define(net: Builder) -> None:
    """A 224x224 image in, 1,000 probabilities out."""
    x = net.input(3, 224, 224)
    x = conv(net, x, "features.0", 64, kernel=3, stride=2, layer="features.1")
    x = max_pool(net, x, "features.2", kernel=3, stride=2, ceil_mode=True)
    x = _fire(net, x, "features.3", squeeze=16, expand=64)
    x = _fire(net, x, "features.4", squeeze=16, expand=64)
    x = max_pool(net, x, "features.5", kernel=3, stride=2, ceil_mode=True)
    x = _fire(net, x, "features.6", squeeze=32, expand=128)
    x = _fire(net, x, "features.7", squeeze=32, expand=128)
    x = max_pool(net, x, "features.8", kernel=3, stride=2, ceil_mode=True)
    x = _fire(net, x, "features.9", squeeze=48, expand=192)
    x = _fire(net, x, "features.10", squeeze=48, expand=192)
    x = _fire(net, x, "features.11", squeeze=64, expand=256)
    x = _fire(net, x, "features.12", squeeze=64, expand=256)
    x = conv(net, x, "classifier.1", 1000, kernel=1, relu=False)
    x = relu(net, x, "classifier.2")
    x = global_average_pool(net, x, "classifier.3", into=net.output(1000))
    softmax(net, x, "softmax")


def _fire(net: Builder, x: View, name: str, squeeze: int, expand: int) -> View:
    """1x1 convolution to few channels, then 1x1 and 3x3 side by side in one buffer."""
    _, height, width = x.shape
    x = conv(net, x, f"{name}.squeeze", squeeze, 1, layer=f"{name}.squeeze_activation")
    both = net.scratch(name, 2 * expand, height, width)
    left, right = both.part(0, expand), both.part(expand, expand)
    conv(net, x, f"{name}.expand1x1", expand, 1, layer=name, into=left)
    conv(net, x, f"{name}.expand3x3", expand, 3, padding=1, layer=name, into=right)
    return both
