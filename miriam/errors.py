"""Errors that say which field broke which rule, what came instead, and what to do."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class MiriamError(Exception):
    """Base of every error that Miriam raises on purpose; ``exit_code`` is the CLI's."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled whole, without calling a constructor that takes other arguments.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class UsageError(MiriamError):
    """A value that a person gave breaks a rule: field, rule, value, what to do."""

    exit_code: ClassVar[int] = 2

    def __init__(self, field: str, rule: str, got: object, advice: str = "") -> None:
        self.field, self.rule, self.got, self.advice = field, rule, got, advice
        tail = f"; {advice}" if advice else ""
        super().__init__(f"{field}: {rule}, got {got!r}{tail}")


class UnknownNameError(UsageError):
    """A name that nothing answers to; the known names are listed."""

    def __init__(self, field: str, got: str, known: Iterable[str]) -> None:
        self.known = tuple(sorted(known))
        near = get_close_matches(got, self.known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(field, "unknown name", got, f"{hint}known: {', '.join(self.known)}")


class MissingCapabilityError(MiriamError):
    """A known kind of device, tool or extra is absent on this machine."""

    exit_code: ClassVar[int] = 3

    def __init__(self, what: str, missing: str, advice: str) -> None:
        self.what, self.missing, self.advice = what, missing, advice
        super().__init__(f"{what}: {missing}; {advice}")


class SourceError(MiriamError):
    """Source text that a compiler or parser refused, with its position and message."""

    def __init__(
        self, path: str, line: int, message: str, excerpt: str = "", column: int = 0
    ) -> None:
        self.path, self.line, self.excerpt, self.column = path, line, excerpt, column
        tail = f"\n{excerpt}" if excerpt else ""
        place = f"{line}:{column}" if column else f"{line}"
        super().__init__(f"{path}:{place}: {message}{tail}")


class ExecutionError(MiriamError):
    """A kernel broke the execution model while it ran: deadlock, divergent barrier, and so on."""


class DeviceError(MiriamError):
    """A device refused a call or failed while it ran, in the words of its driver."""


class VerificationError(MiriamError):
    """An output that should equal the original's does not, or a block did not run exactly once."""


class DeadlineError(MiriamError):
    """A task missed a deadline that the caller asked to be kept."""
