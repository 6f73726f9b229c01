"""The elastic source text: what a kernel reaches, its body as a function, and its wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.forms import FORMS, wrapper
from miriam.elastic.cuda.parse import Item, Unit
from miriam.elastic.cuda.render import Edit, insertion, render
from miriam.elastic.cuda.signature import kernel_signature
from miriam.elastic.cuda.syntax import callee, find, last_name, text, words

HEADER = Path(__file__).parent / "miriam_elastic.h"
INDEX_TYPES = {"threadIdx": "uint3", "blockIdx": "uint3", "blockDim": "dim3", "gridDim": "dim3"}
_ORIGINALS = """\
// What the elastic kernels reach. Define MIRIAM_HAVE_ORIGINALS where the original file comes first.
#ifndef MIRIAM_HAVE_ORIGINALS"""


def emit(reached: Sequence[Reach], apart: Sequence[bool], title: str) -> str:
    """One text with the elastic forms of the kernels of ``reached``, all of one unit.

    ``apart[i]``: whether a barrier must stand between two logical blocks of kernel i.
    """
    unit = reached[0].unit
    kernels = {r.kernel: (r, a) for r, a in zip(reached, apart, strict=True)}
    helpers = {i: r for r in reached for i in r.items if _becomes_virtual(r, i)}
    kept = {i for r in reached for i in r.items if not _becomes_virtual(r, i)}

    def elastic(item: Item) -> str:
        return _kernel(*kernels[item]) if item in kernels else _helper(helpers[item], item)

    context = [i for i in unit.items if i.kind in ("include", "using") or i in kept]
    changed = [i for i in unit.items if i in kernels or i in helpers]
    originals = [_ORIGINALS, *_scoped(context, lambda i: _original(unit, i)), "#endif"]
    return "\n".join([title, _header(), *originals, "", *_scoped(changed, elastic), ""])


def entry_names(kernel: Item) -> dict[str, str]:
    """The qualified name of each form's wrapper."""
    return {form: f"{kernel.qualified}__{form}" for form in FORMS}


@cache
def _header() -> str:
    return HEADER.read_text(encoding="utf-8")


def _becomes_virtual(reached: Reach, item: Item) -> bool:
    return item.kind == "device" and item.name in reached.virtual


def _scoped(items: Iterable[Item], written: Callable[[Item], str]) -> Iterator[str]:
    """The texts of ``items``, neighbours in one namespace together inside it."""
    for opener, group in groupby(items, key=lambda i: i.opener):
        yield from (f"{o} {{" for o in opener)
        yield from (written(i) for i in group)
        if opener:
            yield "}" * len(opener)


def _original(unit: Unit, item: Item) -> str:
    if item.kind == "include":
        return text(item.node).strip()
    body = render(unit.text, item.node.start_byte, item.node.end_byte)
    if item.core.type.endswith("_specifier") and not body.rstrip().endswith(";"):
        body += ";"
    return f'extern "C" {{\n{body}\n}}' if item.extern_c else body


def _helper(reached: Reach, item: Item) -> str:
    signature = item.signature
    parameters = signature.child_by_field_name("parameters") if signature else None
    edits = _edits(reached, item)
    if parameters is not None:
        edits.append(insertion(parameters, _index_parameters(reached)))
    return render(reached.unit.text, item.node.start_byte, item.node.end_byte, edits)


def _kernel(reached: Reach, apart: bool) -> str:
    source, item = reached.unit.text, reached.kernel
    parts, body = kernel_signature(source, item), item.body
    assert body is not None  # what makes an item a kernel
    taken = ", ".join((_index_parameters(reached), *parts.taken))
    lines = [f"// {item.name}: one logical block"]
    if parts.template:
        lines.append(parts.template)
    lines.append(f"__device__ MIRIAM_INLINE void {item.name}__body({taken})")
    lines.append(render(source, body.start_byte, body.end_byte, _edits(reached, item)))
    head = f'extern "C" {parts.head}' if item.extern_c else parts.head
    given = ", ".join(("const MiriamLaunch miriam", *parts.given))
    lines.append('#line 1 "miriam"')
    for form in FORMS:
        if parts.template:
            lines.append(parts.template)
        statements = wrapper(form, f"{item.name}__body{parts.arguments}", parts.forwarded, apart)
        tail = f" {parts.tail}" if parts.tail else ""
        lines.append(f"{head} {item.name}__{form}({given}){tail} {statements}")
    return "\n".join(lines)


def _index_parameters(reached: Reach) -> str:
    return ", ".join(f"const {INDEX_TYPES[i]} {i}" for i in reached.indices)


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
