"""The generator: an original kernel becomes one whose logical blocks run where and when we like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from miriam.elastic.result import Elasticized, ElasticKernel, IndexFunction, Verdict
from miriam.errors import MissingCapabilityError

if TYPE_CHECKING:
    from miriam.elastic.cuda import elasticize

__all__ = ["ElasticKernel", "Elasticized", "IndexFunction", "Verdict", "elasticize"]


def __getattr__(name: str) -> object:
    # The generator needs the `elastic` extra; its answers do not.
    if name != "elasticize":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from miriam.elastic.cuda import elasticize
    except ModuleNotFoundError as error:
        raise MissingCapabilityError(
            "elasticize", f"{error.name} is not installed", "pip install miriam-gpu[elastic]"
        ) from None
    return elasticize
