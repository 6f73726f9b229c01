"""Rules about who meets whom: barriers and warp collectives once blocks follow one another.

In the original a thread that is done has left, and nobody waits for it. In a loop over logical
blocks it is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from miriam.elastic.cuda.kinds import Kind, Kinds, has_full_mask
from miriam.elastic.cuda.levels import Level
from miriam.elastic.cuda.memory import shared_names
from miriam.elastic.cuda.subject import Refusal, Subject
from miriam.elastic.cuda.syntax import called_name, text
from miriam.elastic.cuda.uniform import Call, calls


@dataclass(frozen=True, slots=True)
class Flow:
    """What a kernel needs between two logical blocks.

    ``apart``: a barrier, because it has shared memory, barriers, collectives or unknown calls.
    ``counted``: threads that are done must take part in the barriers of those that are not.
    ``whole_warps``: the block's x extent must be a multiple of 32.
    """

    has_barrier: bool
    has_shared: bool
    apart: bool
    counted: bool
    whole_warps: bool


def examine(subject: Subject) -> Flow | Refusal:
    """Look at every call of the kernel; the first that no form can keep right is the refusal."""
    kinds = Kinds(subject)
    made = [(c, kinds.kind(c)) for c in calls(subject.reached)]
    refused = [*_barriers(made, subject), *_collectives(made), *_unknown(made)]
    if refused:
        return min(refused, key=lambda r: r.at)
    barriers = [c for c, kind in made if kind is Kind.BARRIER]
    collectives = [c for c, kind in made if kind is Kind.COLLECTIVE]
    shared = bool(shared_names(subject.items))
    return Flow(
        has_barrier=bool(barriers),
        has_shared=shared,
        apart=shared or any(kind is not Kind.PLAIN for _, kind in made),
        counted=any(c.level > Level.BLOCK for c in barriers),
        whole_warps=any(c.level is Level.WARP for c in collectives),
    )


def _barriers(made: list[tuple[Call, Kind]], subject: Subject) -> Iterator[Refusal]:
    """barrier-not-uniform: only plain barriers in functions can count who is done."""
    barriers = [c for c, kind in made if kind is Kind.BARRIER]
    astray = [c for c in barriers if c.level > Level.BLOCK]
    if not astray or all(_can_count(c, subject) for c in barriers):
        return
    call = astray[0]
    detail = f"not all threads of a block may reach {called_name(call.node)}"
    yield Refusal("barrier-not-uniform", detail, call.node.start_byte)


def _can_count(call: Call, subject: Subject) -> bool:
    plain = text(call.node).replace(" ", "") == "__syncthreads()"
    return plain and call.function in subject.reached.functions and not _in_lambda(call)


def _in_lambda(call: Call) -> bool:
    current = call.node.parent
    while current is not None and current != call.function.node:
        if current.type == "lambda_expression":
            return True
        current = current.parent
    return False


def _collectives(made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """collective-not-uniform: it would wait for lanes that, in the original, have left."""
    for call, kind in made:
        if kind is Kind.COLLECTIVE and call.level is Level.VARYING and has_full_mask(call):
            detail = f"not all threads of a warp may reach {called_name(call.node)}"
            yield Refusal("collective-not-uniform", detail, call.node.start_byte)


def _unknown(made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """unknown-call: it may wait for threads that, in the original, have left."""
    for call, kind in made:
        if kind is Kind.UNKNOWN and call.level > Level.BLOCK:
            name = called_name(call.node) or "what is called"
            detail = f"{name} is not defined here and may wait for the block's other threads"
            yield Refusal("unknown-call", detail, call.node.start_byte)
