"""Miriam: a latency-critical DNN beside normal ones on one NVIDIA GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from miriam.check import FormVerdict, KernelVerdict, verify
    from miriam.elastic import Elasticized, ElasticKernel, Verdict, elasticize

__version__ = "0.1.0"
__all__ = [
    "ElasticKernel",
    "Elasticized",
    "FormVerdict",
    "KernelVerdict",
    "Verdict",
    "elasticize",
    "verify",
]

_HOMES = {
    **dict.fromkeys(["ElasticKernel", "Elasticized", "Verdict", "elasticize"], "miriam.elastic"),
    **dict.fromkeys(["FormVerdict", "KernelVerdict", "verify"], "miriam.check"),
}


def __getattr__(name: str) -> object:
    # Imported on first use: `import miriam` itself stays quick.
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
