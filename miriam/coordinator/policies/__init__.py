"""The policies, one file each; a module ``a_b.py`` with ``POLICY`` is the policy ``a-b``."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module
from pkgutil import iter_modules

from miriam.coordinator.policy import Policy
from miriam.errors import UnknownNameError, UsageError


def names() -> tuple[str, ...]:
    """The names of all policies."""
    return tuple(sorted(m.name.replace("_", "-") for m in iter_modules(__path__)))


def get(name: str) -> Policy:
    """The policy called ``name``, with other settings if it says so: ``vacate:share=0.5``.

    Settings are the policy's own fields, several of them separated by colons. UnknownNameError
    lists the known policies, or the settings of a policy; UsageError for a value that is no
    number, and as the policy itself has it.
    """
    plain, *settings = name.split(":")
    if plain not in names():
        raise UnknownNameError("policy", name, names())
    policy: Policy = import_module(f"{__name__}.{plain.replace('-', '_')}").POLICY
    if not settings:
        return policy
    # Every policy is a frozen dataclass; what it can be told are its fields but for the name.
    known = {f.name for f in fields(policy) if f.name != "name"}  # type: ignore[arg-type]
    changed: dict[str, float] = {}
    for setting in settings:
        field, _, value = setting.partition("=")
        if field not in known:
            raise UnknownNameError(f"setting of policy {plain}", field, known)
        changed[field] = _number(f"policy {plain} {field}", value)
    made: Policy = replace(policy, name=name, **changed)  # type: ignore[type-var]
    return made


def _number(field: str, text: str) -> float:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise UsageError(field, "a number", text) from None
