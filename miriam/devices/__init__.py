"""Devices: one contract; a simulated GPU, the host's CPU, a CUDA GPU.

A name is ``kind`` or ``kind:rest``; the kind ``x`` is the package or module ``x`` here with a
function ``open_device(rest, compute)``.
"""

from __future__ import annotations

from importlib import import_module

from miriam.devices.contract import Device
from miriam.errors import UnknownNameError

KINDS = ("sim", "host", "cuda")


def get(name: str, *, compute: bool = False) -> Device:
    """The device called ``name``: ``sim:orin``, ``sim:h200:32``, ``host``, ``cuda:0``.

    ``compute``: outputs are computed, not only timed. UnknownNameError for an unknown kind or
    GPU, MissingCapabilityError where a known kind is absent on this machine.
    """
    kind, _, rest = name.partition(":")
    if kind not in KINDS:
        raise UnknownNameError("device", name, KINDS)
    device: Device = import_module(f"{__name__}.{kind}").open_device(rest, compute)
    return device
