"""Miriam: a latency-critical DNN beside normal ones on one NVIDIA GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from miriam.elastic import Elasticized, ElasticKernel, Verdict, elasticize

__version__ = "0.1.0"
__all__ = ["ElasticKernel", "Elasticized", "Verdict", "elasticize"]

_HOMES = dict.fromkeys(__all__, "miriam.elastic")


def __getattr__(name: str) -> object:
    # Imported on first use: `import miriam` itself stays quick.
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
