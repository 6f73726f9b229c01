"""Files that are made once: addressed by all that they depend on, and whole or absent."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from miriam.errors import UsageError

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached file: its content is at the start of ``path``, and a digest follows it."""

    path: Path
    content: bytes


def cache_folder(kind: str) -> Path:
    """``$MIRIAM_CACHE_DIR/kind``, or ``~/.cache/miriam/kind``."""
    root = os.environ.get("MIRIAM_CACHE_DIR")
    return (Path(root) if root else Path.home() / ".cache" / "miriam") / kind


class Cache:
    """Keeps what was made in ``folder``; processes and threads may share one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(
        self, parts: Iterable[str | bytes], make: Callable[[], bytes], suffix: str = ""
    ) -> Entry:
        """The entry for ``parts``; what is absent or damaged comes from ``make``.

        ``parts`` must name everything that ``make`` depends on. UsageError where the folder
        takes no files; what ``make`` raises leaves no entry behind.
        """
        (entry,) = self.fetch_many([parts], lambda _: [make()], suffix)
        return entry

    def fetch_many(
        self,
        keys: Iterable[Iterable[str | bytes]],
        make: Callable[[Sequence[int]], Sequence[bytes]],
        suffix: str = "",
    ) -> tuple[Entry, ...]:
        """The entry for each of ``keys``; see ``fetch``.

        ``make`` is told the places in ``keys`` of what is absent, equal keys once, and gives the
        contents in that order; it is not called for nothing.
        """
        paths = [self._folder / f"{_key(parts)}{suffix}" for parts in keys]
        intact = {path: _intact(path) for path in paths}
        known = {path: content for path, content in intact.items() if content is not None}
        absent = {path: i for i, path in enumerate(paths) if path not in known}
        if absent:
            with self._scratch() as scratch:
                for path, content in zip(absent, make(tuple(absent.values())), strict=True):
                    self._write(scratch, content, path)
                    known[path] = content
        return tuple(Entry(path, known[path]) for path in paths)

    def _write(self, scratch: Path, content: bytes, path: Path) -> None:
        try:
            scratch.write_bytes(content + hashlib.sha256(content).digest())
            scratch.replace(path)
        except OSError as error:
            raise self._unusable(error) from None

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A file of our own in the folder, gone at the end unless it was moved."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="making-")
            os.close(handle)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            yield Path(name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def _unusable(self, error: OSError) -> UsageError:
        advice = f"set MIRIAM_CACHE_DIR: {error}"
        return UsageError("cache directory", "writable", str(self._folder), advice)


def _key(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        # Source text that is not UTF-8 carries its bytes as surrogates.
        data = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:_DIGEST_BYTES]


def _intact(path: Path) -> bytes | None:
    """The content in front of its digest; None if there is none or they do not match."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    content = written[:-_DIGEST_BYTES]
    return content if hashlib.sha256(content).digest() == written[-_DIGEST_BYTES:] else None
