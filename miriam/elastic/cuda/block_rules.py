"""Rules of the block axis: what keeps several logical threads off one physical thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from miriam.elastic.cuda.indirect import given_function
from miriam.elastic.cuda.kinds import Kind, Kinds
from miriam.elastic.cuda.memory import shared_names, unstable_names
from miriam.elastic.cuda.names import VOTING_BARRIERS
from miriam.elastic.cuda.structure import (
    function_as_value,
    index_in_default,
    index_in_functor,
    index_in_method,
)
from miriam.elastic.cuda.subject import Refusal, Subject, nodes
from miriam.elastic.cuda.syntax import called_name, find, text
from miriam.elastic.cuda.uniform import Call
from miriam.elastic.cuda.waits import waiting_loop

_GROUPS = re.compile(
    r"cooperative_groups|this_thread_block|tiled_partition|coalesced_threads|coalesced_group|"
    r"thread_block\w*|thread_group|this_thread"
)
_MATRIX = re.compile(
    r"wmma|\w*mma_sync|\w+_matrix_sync|__pipeline_\w+|memcpy_async|__nvvm_cp_async\w*|pipeline"
)
_SCHEDULE = re.compile(r"__activemask")
_INDEX = re.compile(r"__nvvm_read_ptx_sreg_n?tid\w*|__builtin_\w*ntid\w*|__builtin_\w*_tid\w*")
_ASSEMBLY = re.compile(
    r"\.sync\b|\bcp\.|\b(shfl|vote|match|redux|wgmma|mma|ldmatrix|stmatrix|activemask|elect)\b|"
    r"%(tid|ntid|warpid|nwarpid|lanemask)"
)
_PLAIN = {"__syncthreads", *VOTING_BARRIERS}

BlockRule = Callable[[Subject, list[tuple[Call, Kind]]], Iterator[Refusal]]


def groups(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """cooperative-groups: their objects know the physical block."""
    yield from _words(subject, _GROUPS, "cooperative-groups", "it knows the physical block")
    if b"cooperative_groups" in subject.reached.unit.text.data:
        short = re.compile("cg")
        yield from _words(subject, short, "cooperative-groups", "it knows the physical block")


def matrix(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """asynchronous-copy, warp-matrix: their state belongs to a physical thread."""
    yield from _words(subject, _MATRIX, "thread-state", "its state belongs to a physical thread")


def schedule(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """active-mask: which lanes run together is not what it was."""
    yield from _words(subject, _SCHEDULE, "active-mask", "which lanes run together may change")


def hidden_thread(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """hidden-index: the thread's index is read through a builtin."""
    yield from _words(subject, _INDEX, "hidden-index", "it reads the physical thread's index")


def assembly(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """inline-assembly: it waits for other threads, or keeps state of its own."""
    for item in subject.items:
        for node in nodes(item, "gnu_asm_expression"):
            found = _ASSEMBLY.search(text(node))
            if found:
                detail = f"{found[0]} in inline assembly"
                yield Refusal("inline-assembly", detail, node.start_byte)


def spin_wait(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """spin-wait: the other thread may be on the same physical thread."""
    unstable = unstable_names(subject.items) | shared_names(subject.items)
    for item in subject.items:
        loop = waiting_loop(item.node, frozenset(), unstable)
        called = {called_name(c) for c in find(loop, "call_expression")} if loop else set()
        # One that meets the block's other threads at a barrier waits there and nowhere else.
        if loop is not None and not called & _PLAIN:
            detail = "the loop may wait for another thread of the block"
            yield Refusal("spin-wait", detail, loop.start_byte)


def calls(subject: Subject, made: list[tuple[Call, Kind]]) -> Iterator[Refusal]:
    """unknown-call, named-barrier: it may read the index, or wait for part of the block."""
    for call, kind in made:
        name = called_name(call.node) or "what is called"
        if kind is Kind.UNKNOWN:
            detail = f"{name} is not defined here and may read the thread's index"
            yield Refusal("unknown-call", detail, call.node.start_byte)
        if kind is Kind.BARRIER and name not in _PLAIN:
            detail = f"{name} is no barrier of the whole block"
            yield Refusal("named-barrier", detail, call.node.start_byte)


def _ours(rule: Callable[[Subject], Iterator[Refusal]]) -> BlockRule:
    return lambda subject, _: rule(subject)


RULES: tuple[BlockRule, ...] = (
    groups,
    matrix,
    schedule,
    hidden_thread,
    assembly,
    _ours(index_in_method),
    _ours(index_in_functor),
    _ours(index_in_default),
    _ours(function_as_value),
    _ours(given_function),
    calls,
    spin_wait,
)


def check(subject: Subject, made: list[tuple[Call, Kind]]) -> Refusal | None:
    """The first of the rules that ``subject``, with its calls ``made``, breaks."""
    return next((refusal for rule in RULES for refusal in rule(subject, made)), None)


def made_calls(subject: Subject, found: list[Call]) -> list[tuple[Call, Kind]]:
    """Calls with what they mean to the other threads."""
    kinds = Kinds(subject)
    return [(call, kinds.kind(call)) for call in found]


def _words(subject: Subject, pattern: re.Pattern[str], reason: str, why: str) -> Iterator[Refusal]:
    for item in subject.items:
        for word in sorted(w for w in item.words if pattern.fullmatch(w)):
            yield Refusal(reason, f"{word}: {why}", subject.word(item, word))
