"""What the generator answers: per kernel what became elastic, and the text that does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import Dim3

_WARP = 32
# Where a logical thread's coordinates come from: arithmetic, or a table in shared memory.
IndexFunction = Literal["computed", "table"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a kernel has a form; if not: the rule that refused it, why, and where.

    ``reason`` is a stable name (docs/transforms), ``path``, ``line`` and ``column`` point into
    the user's files, ``excerpt`` is that line with a caret.
    """

    ok: bool
    reason: str = ""
    detail: str = ""
    path: str = ""
    line: int = 0
    column: int = 0
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class ElasticKernel:
    """One kernel: verdicts, emitted text, and what the forms are called.

    ``name`` is qualified (``ns::blur``); ``path`` and ``line`` say where it is written.
    ``template`` holds the names of its template parameters. ``grid`` covers slice and
    persistent, ``yields`` stopping and resuming, ``block`` fewer threads per logical block.
    ``entries`` gives each form's kernel name (``{"slice": "ns::blur__slice", ...}``),
    ``block_entries`` that of the same forms with fewer threads; empty where ``block`` is refused.
    ``any_threads``: one compiled block form runs on any number of threads, else one per fold.
    ``whole_warps``: logical and physical block have to be multiples of 32 threads.
    ``source`` can be compiled alone; it is empty when nothing became elastic. ``original``: the
    kernel as it was, refused or not, with only what it reaches.
    """

    name: str
    path: str
    line: int
    template: tuple[str, ...]
    grid: Verdict
    block: Verdict
    yields: Verdict
    entries: Mapping[str, str] = field(default_factory=dict)
    block_entries: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    original: str = ""
    has_barrier: bool = False
    has_shared: bool = False
    any_threads: bool = False
    whole_warps: bool = False

    def entry(
        self, form: str, instance: str | None = None, fold: int = 1, block: Dim3 | None = None
    ) -> str:
        """The name expression of ``form`` (``slice``, ``persistent``, ``yield``).

        ``instance`` is the original's, with template arguments: ``blur<4>`` gives
        ``blur__slice<4>``. With a ``fold`` of 2, for two logical threads on each physical one,
        it gives ``blur__block_slice<2, 64, 1, 1, 4>`` where the logical ``block`` is (64, 1, 1).
        A kernel that runs on any number of threads needs no block, ``blur__block_slice<2, 4>``,
        where 2 only sets the launch bounds; with a fold of 0 they are the original's.
        UnknownNameError for a form that the kernel does not have, UsageError for a fold that it
        does not have, and where the form depends on the block and none is given.
        """
        _, bracket, arguments = (instance or "").partition("<")
        if fold == 1:
            return f"{self._named(self.entries, form)}{bracket}{arguments}"
        entry, first = self._named(self.block_entries, form), str(fold)
        if fold < 0 or (fold == 0 and not self.any_threads):
            raise UsageError(f"fold of kernel {self.name}", "at least 1", fold)
        if not self.any_threads:
            if block is None:
                raise UsageError(f"block of kernel {self.name}", "given with a fold", block)
            first = f"{fold}, {block.x}, {block.y}, {block.z}"
        return f"{entry}<{first}, {arguments}" if bracket else f"{entry}<{first}>"

    def physical_threads(self, threads: int, fold: int) -> int:
        """The threads of a physical block for ``threads`` logical ones, ``fold`` on each.

        UsageError for a fold below 1 and where warps would not stay whole.
        """
        if fold < 1:
            raise UsageError("fold", "at least 1", fold)
        physical = -(-threads // fold)
        if fold > 1 and self.whole_warps and (physical % _WARP or threads % _WARP):
            rule = f"one that leaves whole warps of {threads} threads"
            raise UsageError(f"fold of kernel {self.name}", rule, fold)
        return physical

    def _named(self, entries: Mapping[str, str], form: str) -> str:
        if form not in entries:
            raise UnknownNameError(f"form of kernel {self.name}", form, entries)
        return entries[form]


@dataclass(frozen=True, slots=True)
class Elasticized:
    """All kernels of a file for one architecture, and one text with all that became elastic.

    ``source`` compiles alone, or after the original file with ``MIRIAM_HAVE_ORIGINALS`` defined.
    ``original``: those same kernels as they were, with only what they reach.
    """

    path: str
    arch: str
    kernels: tuple[ElasticKernel, ...]
    source: str
    original: str = ""

    def kernel(self, name: str) -> ElasticKernel:
        """The kernel called ``name``, template arguments ignored; UnknownNameError if none."""
        plain = name.partition("<")[0].strip()
        for kernel in self.kernels:
            if plain in (kernel.name, kernel.name.rpartition("::")[2]):
                return kernel
        raise UnknownNameError(f"kernel in {self.path}", name, (k.name for k in self.kernels))
