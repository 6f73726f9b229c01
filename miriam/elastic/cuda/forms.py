"""The ``__global__`` wrappers: which logical blocks a launch runs, and when it stops."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SLICE = """{{
  if (blockIdx.x < miriam.count) {{
    {body}(miriam_block(miriam, miriam.start + blockIdx.x), miriam_grid(miriam){arguments});
  }}
}}"""

PERSISTENT = """{{
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {{
    {body}(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam){arguments});{barrier}
  }}
}}"""

# Two slots: a slow thread reads one while the leader already writes the other.
YIELD = """{{
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {{
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    {body}(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam){arguments});
  }}
}}"""

FORMS: Mapping[str, str] = MappingProxyType(
    {"slice": SLICE, "persistent": PERSISTENT, "yield": YIELD}
)
BARRIER = "\n    __syncthreads();"


def wrapper(form: str, body: str, arguments: tuple[str, ...], barrier: bool) -> str:
    """The statements of ``form``: calls ``body`` with ``arguments`` per logical block."""
    passed = "".join(f", {a}" for a in arguments)
    return FORMS[form].format(body=body, arguments=passed, barrier=BARRIER if barrier else "")
