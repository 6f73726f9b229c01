"""The block axis: whether a kernel's logical threads may share physical ones, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass

from miriam.elastic.cuda import block_rules
from miriam.elastic.cuda.calls import Names
from miriam.elastic.cuda.fission import Fission, split
from miriam.elastic.cuda.flow import Flow
from miriam.elastic.cuda.inline import inlined
from miriam.elastic.cuda.kinds import Kind
from miriam.elastic.cuda.parse import Item, Unit
from miriam.elastic.cuda.signature import kernel_signature
from miriam.elastic.cuda.subject import Refusal, Subject
from miriam.elastic.cuda.text import Text
from miriam.elastic.cuda.uniform import calls
from miriam.elastic.result import IndexFunction

_LOCKSTEP = re.compile(r"volatile|asm|__asm|__asm__|__\w*lane\w*")
INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")


@dataclass(frozen=True, slots=True)
class Block:
    """How a kernel runs on fewer threads.

    ``subject`` has all four indices as parameters. ``apart`` as in Flow. ``warps``: logical
    warps have to be physical ones; ``rows``: and the block's x extent a multiple of 32.
    ``fission``: what splits the body at its barriers; None for a kernel without any, whose body
    runs once per logical thread.
    """

    subject: Subject
    index: IndexFunction
    apart: bool
    warps: bool
    rows: bool
    fission: Fission | None


class BlockJudge:
    """Asks for the block forms of a unit's kernels, with helpers in place where they meet."""

    def __init__(self, unit: Unit, index: IndexFunction) -> None:
        self._index = index
        self._inlined = inlined(unit)
        self._names = Names(self._inlined.unit)
        self._kernels = dict(zip(unit.kernels, self._inlined.unit.kernels, strict=True))

    @property
    def text(self) -> Text:
        """What the positions in refusals refer to."""
        return self._inlined.unit.text

    def judge(self, kernel: Item, flow: Flow) -> Block | Refusal:
        """The block form of a kernel whose grid form is as ``flow`` says, or why it has none."""
        mine = self._kernels[kernel]
        refused = self._inlined.refused.get(mine.node.start_byte)
        return refused or _judged(self._names, mine, flow, self._index)


def _judged(names: Names, kernel: Item, flow: Flow, index: IndexFunction) -> Block | Refusal:
    reached = names.reach(kernel, INDICES)
    subject = Subject(reached, kernel_signature(reached.unit.text, kernel))
    made = block_rules.made_calls(subject, calls(reached))
    refusal = block_rules.check(subject, made)
    if refusal is not None:
        return refusal
    fission = None
    barriers = [call for call, kind in made if kind is Kind.BARRIER]
    if barriers:
        away = next((c for c in barriers if c.function is not kernel), None)
        if away is not None:
            return Refusal("barrier-in-helper", away.function.name, away.node.start_byte)
        found = split(subject)
        if isinstance(found, Refusal):
            return found
        fission = found
    warps = any(kind is Kind.COLLECTIVE for _, kind in made) or _is_lockstep(subject)
    return Block(subject, index, flow.apart, warps, flow.whole_warps, fission)


def _is_lockstep(subject: Subject) -> bool:
    """Whether the code may rely on the threads of a warp being together, or on who they are."""
    words = {w for item in subject.items for w in item.words}
    return any(_LOCKSTEP.fullmatch(w) for w in words)
