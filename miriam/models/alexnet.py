"""AlexNet in torchvision's form (one tower, no local response norm), with a softmax.

Krizhevsky, "One weird trick for parallelizing convolutional neural networks", arXiv 1404.5997.
"""

from __future__ import annotations

from miriam.models.builder import Builder
from miriam.models.layers import conv, dense, max_pool, relu, softmax


def define(net: Builder) -> None:
    """A 224x224 image in, 1,000 probabilities out.

    torchvision's adaptive average pool of 6x6 to 6x6 changes nothing and is left out.
    """
    x = net.input(3, 224, 224)
    x = conv(net, x, "features.0", 64, kernel=11, stride=4, padding=2, layer="features.1")
    x = max_pool(net, x, "features.2", kernel=3, stride=2)
    x = conv(net, x, "features.3", 192, kernel=5, padding=2, layer="features.4")
    x = max_pool(net, x, "features.5", kernel=3, stride=2)
    x = conv(net, x, "features.6", 384, kernel=3, padding=1, layer="features.7")
    x = conv(net, x, "features.8", 256, kernel=3, padding=1, layer="features.9")
    x = conv(net, x, "features.10", 256, kernel=3, padding=1, layer="features.11")
    x = max_pool(net, x, "features.12", kernel=3, stride=2)
    x = dense(net, x, "classifier.1", 4096)
    x = relu(net, x, "classifier.2")
    x = dense(net, x, "classifier.4", 4096, layer="classifier.5", relu=True)
    x = dense(net, x, "classifier.6", 1000, into=net.output(1000))
    softmax(net, x, "softmax")
