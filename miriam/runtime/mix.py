"""The mix file: which tasks share one GPU, when they are asked for, and what is expected.

Decoding is strict. A key that is unknown, out of range or without effect in its place is an
error that names the file, the place in it (``task[1].arrivals.hz``), the rule and the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from miriam import tomlfile
from miriam.errors import UnknownNameError, UsageError

Kind = Literal["closed", "uniform", "poisson", "trace"]
Late = Literal["count", "drop"]


class ArrivalsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When requests come; ``hz`` is for uniform and poisson, ``file`` for trace."""

    kind: Kind
    hz: float | None = None
    file: str | None = None


class TaskEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[task]]``; ``name`` is the model's, numbered where it occurs again, if left out."""

    model: str
    name: str | None = None
    critical: bool = False
    priority: int = 0
    deadline_ms: float | None = None
    weight: float | None = None
    in_flight: int = 1
    arrivals: ArrivalsEntry = ArrivalsEntry("closed")

    @property
    def title(self) -> str:
        """What the task is called."""
        return self.name or self.model

    @property
    def deadline_ns(self) -> int | None:
        """From arrival to completion; None without a deadline."""
        return None if self.deadline_ms is None else round(self.deadline_ms * 1e6)


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    task: tuple[TaskEntry, ...]
    late: Late | None = None
    queue: int | None = None


@dataclass(frozen=True, slots=True)
class MixFile:
    """A mix: tasks with distinct names, and what happens to late and to surplus requests.

    ``late``: requests whose deadline passes before they start are dropped, or run and counted.
    ``queue``: how many requests of a task may wait beyond those in flight, None for any number;
    what arrives to a full queue is refused. ``folder``: where the trace files are looked for.
    """

    tasks: tuple[TaskEntry, ...]
    late: Late = "count"
    queue: int | None = None
    folder: Path = Path()

    def with_normal(self, model: str) -> MixFile:
        """The mix with one more task: ``model``, normal, closed loop."""
        return MixFile(_named((*self.tasks, TaskEntry(model))), self.late, self.queue, self.folder)


_ARRAYS = "an array; a task begins with [[task]]"


def read(path: Path, models: Sequence[str]) -> MixFile:
    """The mix in the TOML file ``path``, whose models are among ``models``.

    UsageError with the file and the place in it for whatever is wrong.
    """
    raw = tomlfile.load(path, "mix")
    document = tomlfile.convert(path, "", raw, _Document, arrays=_ARRAYS)
    _check_tasks(path, document.task, models)
    _check_settings(path, document)
    folder = path.parent
    return MixFile(_named(document.task), document.late or "count", document.queue, folder)


def _check_tasks(path: Path, tasks: Sequence[TaskEntry], models: Sequence[str]) -> None:
    if not tasks:
        raise UsageError(f"{path}: task", "at least one task", [], "a task begins with [[task]]")
    names: dict[str, int] = {}
    for index, task in enumerate(tasks):
        where = f"{path}: task[{index}]"
        if task.model not in models:
            raise UnknownNameError(f"{where}.model", task.model, models)
        if task.name is not None and names.setdefault(task.name, index) != index:
            rule = f"a name that no other task has; task[{names[task.name]}] has it"
            raise UsageError(f"{where}.name", rule, task.name)
        for field, rule, bad in _TASK_RULES:
            value = getattr(task, field)
            if value is not None and bad(value):
                raise UsageError(f"{where}.{field}", rule, value)
        if task.critical and task.weight is not None:
            advice = "normal tasks share what critical ones leave; use priority"
            raise UsageError(f"{where}.weight", "only for normal tasks", task.weight, advice)
        _check_arrivals(f"{where}.arrivals", task.arrivals)


def _not_positive(value: float) -> bool:
    return not 0 < value < math.inf


_TASK_RULES: tuple[tuple[str, str, Callable[[float], bool]], ...] = (
    ("in_flight", "at least 1", lambda value: value < 1),
    ("deadline_ms", "a finite number above 0", _not_positive),
    ("weight", "a finite number above 0", _not_positive),
)


def _check_arrivals(where: str, arrivals: ArrivalsEntry) -> None:
    kind = arrivals.kind
    wanted = {"uniform": "hz", "poisson": "hz", "trace": "file"}.get(kind)
    for field in ("hz", "file"):
        value = getattr(arrivals, field)
        if field == wanted and value is None:
            raise UsageError(f"{where}.{field}", f"required where kind is {kind!r}", None)
        if field != wanted and value is not None:
            raise UsageError(f"{where}.{field}", f"not used where kind is {kind!r}", value)
    if arrivals.hz is not None and _not_positive(arrivals.hz):
        raise UsageError(f"{where}.hz", "a finite number above 0", arrivals.hz)


def _check_settings(path: Path, document: _Document) -> None:
    if document.queue is not None and document.queue < 0:
        raise UsageError(f"{path}: queue", "not negative", document.queue)
    if document.queue is not None and all(t.arrivals.kind == "closed" for t in document.task):
        rule = "only where a task's arrivals are not closed; a closed loop never queues"
        raise UsageError(f"{path}: queue", rule, document.queue)
    if document.late is not None and all(t.deadline_ms is None for t in document.task):
        raise UsageError(f"{path}: late", "only where a task has a deadline_ms", document.late)


def _named(tasks: Sequence[TaskEntry]) -> tuple[TaskEntry, ...]:
    """The same tasks, each with a name of its own."""
    taken = {task.name for task in tasks if task.name is not None}
    named = []
    for task in tasks:
        name, number = task.name or task.model, 2
        while task.name is None and name in taken:
            name, number = f"{task.model}-{number}", number + 1
        taken.add(name)
        named.append(msgspec.structs.replace(task, name=name))
    return tuple(named)
