"""Running a report again, and where the new one differs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from miriam.bench import pruning, studies
from miriam.bench.execute import Executor, workshop
from miriam.bench.options import Options
from miriam.bench.report import encode
from miriam.errors import UsageError, VerificationError


def read(path: str) -> tuple[bytes, Options]:
    """A report's bytes and the options that made it; UsageError for what is no such report."""
    try:
        data = Path(path).read_bytes()
        options = msgspec.json.decode(data, type=_Head).options
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageError("--replay", "a report of miriam bench", path, str(error)) from None
    return data, options


class _Head(msgspec.Struct):
    options: Options


def replay(data: bytes, options: Options, executor: Executor) -> bytes:
    """Run ``options`` again; VerificationError names the first figure that is not as in ``data``.

    The new report's bytes, equal to ``data``.
    """
    again = document(options, executor)
    if again != data:
        where = first_difference(msgspec.json.decode(data), msgspec.json.decode(again))
        raise VerificationError(f"replay: {where or 'the same figures in other bytes'}")
    return again


def document(options: Options, executor: Executor) -> bytes:
    """The report that ``options`` make."""
    if options.benchmark == pruning.NAME:
        return pruning.encode(pruning.explore(options, workshop(options.seed)))
    return encode(studies.run(options, executor))


def first_difference(old: object, new: object, at: str = "") -> str | None:
    """Where two JSON values first differ and how, None if they are equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            found = first_difference(old.get(key), new.get(key), f"{at}.{key}" if at else key)
            if found:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        for index, (mine, other) in enumerate(zip(old, new, strict=False)):
            found = first_difference(mine, other, f"{at}[{index}]")
            if found:
                return found
        return _differ(f"length of {at}", len(old), len(new))
    return _differ(at, old, new)


def _differ(at: str, old: object, new: object) -> str | None:
    return None if old == new else f"{at} was {old!r} and is {new!r}"
