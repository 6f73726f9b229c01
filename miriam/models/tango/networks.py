"""The six networks by name."""

from __future__ import annotations

from collections.abc import Callable

from miriam.errors import UnknownNameError
from miriam.kernels import Program
from miriam.models.tango import alexnet, resnet50, small, squeezenet

_NETWORKS: dict[str, Callable[[str, str], Program]] = {
    "alexnet-tango": alexnet.build,
    "squeezenet-tango": squeezenet.build,
    "resnet50-tango": resnet50.build,
    "cifarnet-tango": small.cifarnet,
    "gru-tango": small.gru,
    "lstm-tango": small.lstm,
}

TANGO_NAMES = tuple(_NETWORKS)
"""The names of the variants."""


def load_tango(name: str, arch: str) -> Program:
    """The variant ``name`` for ``arch``, for the simulator; UnknownNameError for either."""
    if name not in _NETWORKS:
        raise UnknownNameError("model", name, TANGO_NAMES)
    return _NETWORKS[name](name, arch)
