"""CifarNet: the layers of Caffe's cifar10_quick with the two norms of its cifar10_full.

Three 5x5 convolutions (32, 32, 64 channels), one max pool, two average pools, dense layers of 64
and 10, softmax. The norms go across channels, with TensorFlow's CIFAR-10 tutorial's parameters
(9 channels, 0.001). As in Caffe, the first ReLU follows its pool, in place, and pools round up.
"""

from __future__ import annotations

from miriam.models.builder import Builder
from miriam.models.layers import (
    average_pool,
    conv,
    dense,
    local_response_norm,
    max_pool,
    relu,
    softmax,
)


def define(net: Builder) -> None:
    """A 32x32 image in, 10 probabilities out."""
    x = net.input(3, 32, 32)
    x = conv(net, x, "conv1", 32, kernel=5, padding=2, relu=False)
    x = max_pool(net, x, "pool1", kernel=3, stride=2, ceil_mode=True)
    x = relu(net, x, "relu1")
    x = local_response_norm(net, x, "norm1", size=9, alpha=0.001)
    x = conv(net, x, "conv2", 32, kernel=5, padding=2, layer="relu2")
    x = average_pool(net, x, "pool2", kernel=3, stride=2)
    x = local_response_norm(net, x, "norm2", size=9, alpha=0.001)
    x = conv(net, x, "conv3", 64, kernel=5, padding=2, layer="relu3")
    x = average_pool(net, x, "pool3", kernel=3, stride=2)
    x = dense(net, x, "ip1", 64)
    x = dense(net, x, "ip2", 10, into=net.output(10))
    softmax(net, x, "softmax")
