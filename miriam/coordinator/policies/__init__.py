"""The policies, one file each; a module ``a_b.py`` with ``POLICY`` is the policy ``a-b``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from miriam.coordinator.policy import Policy
from miriam.errors import UnknownNameError


def names() -> tuple[str, ...]:
    """The names of all policies."""
    return tuple(sorted(m.name.replace("_", "-") for m in iter_modules(__path__)))


def get(name: str) -> Policy:
    """The policy called ``name``; UnknownNameError lists the known ones."""
    if name not in names():
        raise UnknownNameError("policy", name, names())
    policy: Policy = import_module(f"{__name__}.{name.replace('-', '_')}").POLICY
    return policy
