"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import Program, Resources
from miriam.models import alexnet, cifarnet, recurrent, resnet50, squeezenet
from miriam.models.builder import Builder, Lookup
from miriam.models.measured import Needs, lookup
from miriam.models.tango import TANGO_NAMES, load_tango


@dataclass(frozen=True, slots=True)
class Network:
    """How to build a network, and which batch norm (if any) follows each of its convolutions."""

    define: Callable[[Builder], None]
    norm_of: Callable[[str], str | None] = lambda _: None


NETWORKS = {
    "alexnet": Network(alexnet.define),
    "squeezenet": Network(squeezenet.define),
    "resnet50": Network(resnet50.define, resnet50.norm_of),
    "cifarnet": Network(cifarnet.define),
    "gru": Network(partial(recurrent.define_gru, hidden=100, steps=2, outputs=1)),
    "lstm": Network(partial(recurrent.define_lstm, hidden=100, steps=2, outputs=1)),
    "gru-large": Network(partial(recurrent.define_gru, hidden=512, steps=32, outputs=512)),
    "lstm-large": Network(partial(recurrent.define_lstm, hidden=512, steps=32, outputs=512)),
}
NAMES = tuple(NETWORKS)

SIMULATOR_ONLY = "tango variants are launch geometry for the simulator, without outputs"


def network(name: str) -> Network:
    """The network called ``name``; UnknownNameError lists the known ones.

    UsageError for a `tango` variant, which nothing can be computed with.
    """
    if name in TANGO_NAMES:
        raise UsageError("model", "a network whose kernels have source", name, SIMULATOR_ONLY)
    if name not in NETWORKS:
        raise UnknownNameError("model", name, NAMES)
    return NETWORKS[name]


def build(name: str, arch: str = "", needs: Lookup = lambda _: Needs(Resources(0, 0))) -> Program:
    """The program of ``name``, with what the forms of each kernel need; by default nothing."""
    builder = Builder(name, arch, needs)
    network(name).define(builder)
    return builder.build()


def load(name: str, arch: str = "sm_87") -> Program:
    """The program of the network ``name`` for ``arch``; UnknownNameError for either.

    Batch 1, fp32; buffers ``input`` and ``output``, weights named as in torch's ``state_dict``.
    One of ``TANGO_NAMES`` gives a program for the simulator alone (see ``miriam.models.tango``).
    """
    if name in TANGO_NAMES:
        return load_tango(name, arch)
    if name not in NETWORKS:
        raise UnknownNameError("model", name, (*NAMES, *TANGO_NAMES))
    return build(name, arch, partial(lookup, arch))
