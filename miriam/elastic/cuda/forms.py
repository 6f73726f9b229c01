"""The ``__global__`` wrappers: which logical blocks a launch runs, and when it stops."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_SLICE = """\
  if (blockIdx.x < miriam.count) {{
    {call}(miriam_block(miriam, miriam.start + blockIdx.x), miriam_grid(miriam){arguments});
  }}"""

_PERSISTENT = """\
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {{
    {call}(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam){arguments});{end}
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
    {call}(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam){arguments});{finish}
  }}"""

FORMS: Mapping[str, str] = MappingProxyType(
    {"slice": _SLICE, "persistent": _PERSISTENT, "yield": _YIELD}
)
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
    call: str,
    arguments: tuple[str, ...],
    *,
    apart: bool,
    counted: bool,
    whole_warps: bool,
) -> str:
    """The body of the wrapper ``form``, which runs ``call`` with ``arguments`` per logical block.

    ``apart``, ``counted`` and ``whole_warps`` as in Flow: what the kernel needs between blocks.
    """
    finish = _FINISH if counted else ""
    statements = FORMS[form].format(
        call=call,
        arguments="".join(f", {a}" for a in arguments),
        end=finish or (_BARRIER if apart else ""),
        finish=finish,
    )
    if form == "slice":
        return f"{{\n{statements}\n}}"
    check = _WHOLE_WARPS if whole_warps else ""
    return f"{{{check}\n{_COUNTER if counted else ''}{statements}\n}}"
