"""The ``__global__`` wrappers: which logical blocks a launch runs, and when it stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from types import MappingProxyType

_SLICE = """\
  if (blockIdx.x < miriam.count) {{
    {call}
  }}"""

_PERSISTENT = """\
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {{
    {call}{end}
  }}"""

# Two slots: a slow thread still reads one while the leader writes the other. The barrier after
# the claim also keeps one logical block's shared memory apart from the next one's.
_YIELD = """\
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {{
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    {call}{finish}
  }}"""

FORMS: Mapping[str, str] = MappingProxyType(
    {"slice": _SLICE, "persistent": _PERSISTENT, "yield": _YIELD}
)
_NUMBERS = {"slice": "blockIdx.x", "persistent": "miriam_at", "yield": "miriam_at"}
_COLUMNS = 100
_GLUE = "\0"
_WHOLE_WARPS = "\n  miriam_need_whole_warps();"
_BARRIER = "\n    __syncthreads();"
# In place of the barrier: whoever is done joins the barriers of the others until all are done.
_COUNTER = """\
  __shared__ unsigned miriam_done;
  unsigned miriam_all = 0;
  if (miriam_leads()) miriam_done = 0;
  __syncthreads();
"""
_FINISH = "\n    miriam_finish(&miriam_done, miriam_all += miriam_threads());"


def wrapper(
    form: str,
    body: str,
    arguments: Sequence[str],
    *,
    apart: bool,
    counted: bool,
    whole_warps: bool,
) -> str:
    """The statements of the wrapper ``form``, which calls ``body`` per logical block.

    ``apart``, ``counted`` and ``whole_warps`` as in Flow: what the kernel needs between blocks.
    """
    call = listed(body, (logical_block(form), "miriam_grid(miriam)", *arguments), indent=4)
    finish = _FINISH if counted else ""
    end = finish or (_BARRIER if apart else "")
    statements = _filled(form, call.lstrip() + ";", end, finish)
    if form == "slice":
        return f"{{\n{statements}\n}}"
    check = _WHOLE_WARPS if whole_warps else ""
    return f"{{{check}\n{_COUNTER if counted else ''}{statements}\n}}"


def block_wrapper(form: str, opening: str, work: Sequence[str], *, apart: bool) -> str:
    """The statements of a block form: ``opening``, and ``work`` for each logical block."""
    statements = _filled(form, "\n    ".join(work), _BARRIER if apart else "", "")
    return f"{{\n  {opening}\n{statements}\n}}"


def logical_block(form: str) -> str:
    """The index of the logical block that ``form`` runs next."""
    return f"miriam_block(miriam, miriam.start + {_NUMBERS[form]})"


def _filled(form: str, call: str, end: str, finish: str) -> str:
    return FORMS[form].format(call=call, end=end, finish=finish)


def listed(head: str, parts: Sequence[str], indent: int = 0) -> str:
    """``head(parts)``, broken between parts into lines of 100 columns where that is possible."""
    margin = " " * indent
    whole = f"{margin}{head}({', '.join(parts)})"
    if len(whole) < _COLUMNS:
        return whole
    glued = ", ".join(part.replace(" ", _GLUE) for part in parts)
    inner = margin + " " * 4
    lines = wrap(
        glued,
        _COLUMNS - 2,
        initial_indent=inner,
        subsequent_indent=inner,
        break_long_words=False,
        break_on_hyphens=False,
    )
    filled = "\n".join(lines).replace(_GLUE, " ")
    return f"{margin}{head}(\n{filled})"
