"""The six networks in torch.nn, written by hand: the oracle for ours.

Module names are torchvision's where it has the network, so that ``state_dict`` names agree.
Modules are called once per inference, so that a hook on each sees its only result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class AlexNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
            *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
            *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            *(nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU()),
            *(nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)),
        )
        self.softmax = nn.Softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x)).flatten(1)
        out: Tensor = self.softmax(self.classifier(x))
        return out


class Fire(nn.Module):
    def __init__(self, channels: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeeze, 1)
        self.squeeze_activation = nn.ReLU()
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        return torch.cat([self.expand1x1(x), self.expand3x3(x)], 1).relu()


class SqueezeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def pool() -> nn.Module:
            return nn.MaxPool2d(3, stride=2, ceil_mode=True)

        self.features = nn.Sequential(
            *(nn.Conv2d(3, 64, 3, stride=2), nn.ReLU(), pool()),
            *(Fire(64, 16, 64), Fire(128, 16, 64), pool()),
            *(Fire(128, 32, 128), Fire(256, 32, 128), pool()),
            *(Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256)),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        self.softmax = nn.Softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.softmax(self.classifier(self.features(x)).flatten(1))
        return out


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int, downsample: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1, self.relu1 = nn.BatchNorm2d(width), nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2, self.relu2 = nn.BatchNorm2d(width), nn.ReLU()
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = nn.Sequential()
        if downsample:
            shortcut = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu2(self.bn2(self.conv2(y)))))
        out: Tensor = (y + self.downsample(x)).relu()
        return out


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(64), nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._stage(64, 64, 3, 1)
        self.layer2 = self._stage(256, 128, 4, 2)
        self.layer3 = self._stage(512, 256, 6, 2)
        self.layer4 = self._stage(1024, 512, 3, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2048, 1000)
        self.softmax = nn.Softmax(1)

    def _stage(self, channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        first = Bottleneck(channels, width, stride, True)
        rest = (Bottleneck(4 * width, width, 1, False) for _ in range(blocks - 1))
        return nn.Sequential(first, *rest)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        out: Tensor = self.softmax(self.fc(self.avgpool(x).flatten(1)))
        return out


class CifarNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1 = nn.Conv2d(3, 32, 5, padding=2), nn.ReLU()
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.norm1 = nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)
        self.conv2, self.relu2 = nn.Conv2d(32, 32, 5, padding=2), nn.ReLU()
        self.pool2 = nn.AvgPool2d(3, 2, ceil_mode=True)
        self.norm2 = nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)
        self.conv3, self.relu3 = nn.Conv2d(32, 64, 5, padding=2), nn.ReLU()
        self.pool3 = nn.AvgPool2d(3, 2, ceil_mode=True)
        self.ip1, self.ip2 = nn.Linear(1024, 64), nn.Linear(64, 10)
        self.softmax = nn.Softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(self.relu1(self.pool1(self.conv1(x))))
        x = self.norm2(self.pool2(self.relu2(self.conv2(x))))
        x = self.pool3(self.relu3(self.conv3(x)))
        out: Tensor = self.softmax(self.ip2(self.ip1(x.flatten(1))))
        return out


class Recurrent(nn.Module):
    """A GRU or LSTM over a sequence, then a dense layer on the last hidden state."""

    def __init__(self, kind: str, hidden: int, outputs: int) -> None:
        super().__init__()
        self.kind = kind
        cell = {"gru": nn.GRU, "lstm": nn.LSTM}[kind](hidden, hidden, batch_first=True)
        self.add_module(kind, cell)
        self.fc = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc(self.get_submodule(self.kind)(x)[0][:, -1])
        return out


def network(name: str, state: Mapping[str, NDArray[np.generic]]) -> nn.Module:
    """The network ``name`` with the tensors of ``state``, ready to infer."""
    kind, _, large = name.partition("-")
    sizes = (512, 512) if large else (100, 1)
    kinds: dict[str, Callable[[], nn.Module]] = {
        "alexnet": AlexNet,
        "squeezenet": SqueezeNet,
        "resnet50": ResNet50,
        "cifarnet": CifarNet,
        "gru": lambda: Recurrent("gru", *sizes),
        "lstm": lambda: Recurrent("lstm", *sizes),
    }
    with torch.device("meta"):  # leaves out torch's own initialisation
        made = kinds[kind]().eval()
    tensors = {key: torch.from_numpy(np.array(value)) for key, value in state.items()}
    missing, unexpected = made.load_state_dict(tensors, strict=False, assign=True)
    assert not unexpected and all(key.endswith("num_batches_tracked") for key in missing)
    return made


def layer_results(model: nn.Module, x: NDArray[np.generic]) -> dict[str, NDArray[np.float32]]:
    """What each module made of the one input ``x``, without the batch axis, by module name."""
    results: dict[str, NDArray[np.float32]] = {}

    def note(name: str) -> None:
        def hook(_module: nn.Module, _args: object, result: Tensor | tuple[Tensor, ...]) -> None:
            tensor = result[0] if isinstance(result, tuple) else result
            results[name] = tensor[0].numpy().copy()

        model.get_submodule(name).register_forward_hook(hook)

    for name, _ in model.named_modules():
        if name:
            note(name)
    with torch.no_grad():
        model(torch.from_numpy(np.array(x))[None])
    return results
