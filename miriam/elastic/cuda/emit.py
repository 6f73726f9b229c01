"""The elastic source text: what a kernel reaches, its body as a function, and its wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from tree_sitter import Node

from miriam.elastic.cuda.block import Block
from miriam.elastic.cuda.block_emit import block_kernel
from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.flow import Flow
from miriam.elastic.cuda.forms import FORMS, listed, wrapper
from miriam.elastic.cuda.names import BARRIERS, is_host_header, is_known_header
from miriam.elastic.cuda.parse import Item, Unit
from miriam.elastic.cuda.render import Edit, insertion, line_directive, render
from miriam.elastic.cuda.signature import loop_bounds
from miriam.elastic.cuda.structure import included
from miriam.elastic.cuda.subject import Subject
from miriam.elastic.cuda.syntax import called_name, callee, find, last_name, text, words

HEADER = Path(__file__).parent / "miriam_elastic.h"
BLOCK_HEADER = Path(__file__).parent / "miriam_block.h"
INDEX_TYPES = {"threadIdx": "uint3", "blockIdx": "uint3", "blockDim": "dim3", "gridDim": "dim3"}
_ORIGINALS = """\
// What the elastic kernels reach. Define MIRIAM_HAVE_ORIGINALS where the original file comes first.
#ifndef MIRIAM_HAVE_ORIGINALS"""


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel that becomes elastic: its head, what it needs, the names it takes from headers.

    ``block``: how it runs on fewer threads, None where it does not.
    """

    subject: Subject
    flow: Flow
    foreign: frozenset[str]
    block: Block | None = None


def emit(plans: Sequence[Plan], title: str) -> str:
    """One text with the elastic forms of the kernels of ``plans``, all of one unit."""
    reached = [p.subject.reached for p in plans]
    unit = reached[0].unit
    kernels = {p.subject.reached.kernel: p for p in plans}
    # One text of a helper serves all kernels: counting barriers is right for the others too.
    ordered = sorted(plans, key=lambda p: p.flow.counted)
    helpers = {
        i: p for p in ordered for i in p.subject.reached.items if _is_virtual(p.subject.reached, i)
    }
    kept = {i for r in reached for i in r.items if not _is_virtual(r, i)}
    foreign = frozenset(n for p in plans for n in p.foreign)

    def elastic(item: Item) -> str:
        if item in kernels:
            return _kernel(kernels[item])
        reached = helpers[item].subject.reached
        return _helper(reached, item, _changes(helpers[item], item))

    context = [*kept, *(i for i in unit.headers if _is_needed(i, foreign))]
    changed = [*kernels, *helpers]
    originals = [_ORIGINALS, *_scoped(context, lambda i: _original(unit, i)), "#endif"]
    blocks = [p.block for p in plans if p.block is not None]
    headers = [_header(HEADER), *([_header(BLOCK_HEADER)] if blocks else [])]
    forms = [*_scoped(changed, elastic), *_block_forms(blocks)]
    return "\n".join([title, *headers, *originals, "", *forms, ""])


def original(subjects: Mapping[Subject, frozenset[str]]) -> str:
    """The kernels of ``subjects`` as they are, with what they reach and the names they miss."""
    reached = [s.reached for s in subjects]
    unit = reached[0].unit
    foreign = frozenset(n for names in subjects.values() for n in names)
    kept = {i for r in reached for i in (*r.items, r.kernel)}
    items = [*kept, *(i for i in unit.headers if _is_needed(i, foreign))]
    return "\n".join([*_scoped(items, lambda i: _original(unit, i)), ""])


def entry_names(kernel: Item) -> dict[str, str]:
    """The qualified name of each form's wrapper."""
    return {form: f"{kernel.qualified}__{form}" for form in FORMS}


def _is_needed(item: Item, foreign: frozenset[str]) -> bool:
    """Whether an include or a using directive may bring in one of the names ``foreign``."""
    if item.kind == "include":
        name = included(item.node)
        host_only = is_host_header(name) and "std" not in foreign
        return bool(foreign) and is_known_header(name) and not host_only
    return bool(foreign)


@cache
def _header(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _block_forms(blocks: Sequence[Block]) -> Iterator[str]:
    """The block forms, and the helpers that take the thread's indices too."""
    kernels = {b.subject.reached.kernel: b for b in blocks}
    helpers = {
        i: b.subject.reached
        for b in blocks
        for i in b.subject.reached.items
        if _is_virtual(b.subject.reached, i)
    }

    def written(item: Item) -> str:
        if item in helpers:
            return _helper(helpers[item], item, _edits(helpers[item], item))
        block = kernels[item]
        reached = block.subject.reached
        return block_kernel(block, _index_parameters(reached), _edits(reached, item))

    return _scoped([*kernels, *helpers], written)


def _is_virtual(reached: Reach, item: Item) -> bool:
    return item.kind == "device" and item.name in reached.virtual


def _scoped(items: Iterable[Item], written: Callable[[Item], str]) -> Iterator[str]:
    """The texts of ``items`` in source order, neighbours in one namespace together inside it."""
    ordered = sorted(items, key=lambda i: i.start)
    for opener, group in groupby(ordered, key=lambda i: i.opener):
        yield from (f"{o} {{" for o in opener)
        yield from (written(i) for i in group)
        if opener:
            yield "}" * len(opener)


def _original(unit: Unit, item: Item) -> str:
    if item.kind == "include":
        return text(item.node).strip()
    body = render(unit.text, item.start, item.node.end_byte)
    if item.core.type.endswith("_specifier") and not body.rstrip().endswith(";"):
        body += ";"
    return f'extern "C" {{\n{body}\n}}' if item.extern_c else body


def _helper(reached: Reach, item: Item, edits: list[Edit]) -> str:
    signature = item.signature
    parameters = signature.child_by_field_name("parameters") if signature else None
    if parameters is not None:
        edits = [*edits, insertion(parameters, _index_parameters(reached))]
    return render(reached.unit.text, item.start, item.node.end_byte, edits)


def _kernel(plan: Plan) -> str:
    reached, parts, flow = plan.subject.reached, plan.subject.signature, plan.flow
    source, item = reached.unit.text, reached.kernel
    body = item.body
    assert body is not None  # what makes an item a kernel
    template = [parts.template] if parts.template else []
    edits = _changes(plan, item)
    taken = (_index_parameters(reached), *parts.taken)
    lines = [
        f"// One logical block of {item.name}.",
        *template,
        listed(f"__device__ MIRIAM_INLINE void {item.name}__body", taken),
        render(source, body.start_byte, body.end_byte, edits),
        line_directive("miriam", 1),
    ]
    head = f'extern "C" {parts.head}' if item.extern_c else parts.head
    given = ("const MiriamLaunch miriam", *parts.given)
    for form in FORMS:
        statements = wrapper(
            form,
            f"{item.name}__body{parts.arguments}",
            parts.forwarded,
            apart=flow.apart,
            counted=flow.counted,
            whole_warps=flow.whole_warps,
        )
        before, after = head, f" {parts.tail}" if parts.tail else ""
        if form != "slice":
            before, after = loop_bounds(before), loop_bounds(after)
        lines += template
        lines.append(f"{listed(f'{before} {item.name}__{form}', given)}{after} {statements}")
    return "\n".join(lines)


def _counted_barriers(function: Node) -> list[Edit]:
    """Each ``__syncthreads()`` becomes a barrier that threads which are done can take part in."""
    calls = [c for c in find(function, "call_expression") if called_name(c) in BARRIERS]
    return [Edit(c.start_byte, c.end_byte, "miriam_meet()") for c in calls]


def _index_parameters(reached: Reach) -> str:
    return ", ".join(f"const {INDEX_TYPES[i]} {i}" for i in reached.indices)


def _changes(plan: Plan, item: Item) -> list[Edit]:
    counted = _counted_barriers(item.node) if plan.flow.counted else []
    return [*counted, *_edits(plan.subject.reached, item)]


def _edits(reached: Reach, item: Item) -> list[Edit]:
    """What changes inside a function: its calls and lambdas get the indices."""
    given = ", ".join(reached.indices)
    edits = []
    for call in find(item.node, "call_expression"):
        name, arguments = callee(call), call.child_by_field_name("arguments")
        if name is not None and arguments is not None and last_name(name) in reached.virtual:
            edits.append(insertion(arguments, given))
    for function in find(item.node, "lambda_expression"):
        captures = function.child_by_field_name("captures")
        if captures is None or find(captures, "lambda_default_capture"):
            continue
        if words(function) & (reached.virtual | set(reached.indices)):
            end = captures.end_byte - 1
            more = f", {given}" if captures.named_children else given
            edits.append(Edit(end, end, more))
    return edits
