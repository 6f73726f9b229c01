"""The text of the block forms: the body by logical threads, and its wrappers."""

from __future__ import annotations

from miriam.elastic.cuda.block import Block
from miriam.elastic.cuda.forms import FORMS, block_wrapper, listed, logical_block
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.render import Edit, line_directive, render
from miriam.elastic.cuda.signature import block_bounds
from miriam.elastic.cuda.split import Split

_FOLDED = "MiriamFolded<miriam_fold, miriam_x, miriam_y, miriam_z>"
_MOST_THREADS = "1024"
_FOLD = "int miriam_fold"
_SHAPE = ("unsigned miriam_x", "unsigned miriam_y", "unsigned miriam_z")
_THREADS = "miriam_threads"
_GIVEN = ("miriam_index", "miriam_shape(miriam)", "miriam_grid(miriam)")


def block_entry_names(kernel: Item) -> dict[str, str]:
    """The qualified name of each block form's wrapper, without the fold."""
    return {form: f"{kernel.qualified}__block_{form}" for form in FORMS}


def block_kernel(block: Block, indices: str, edits: list[Edit]) -> str:
    """The body of a kernel as its threads share physical ones, and its wrappers.

    ``indices``: the body's first parameters; ``edits``: what changes inside it.
    """
    reached, parts = block.subject.reached, block.subject.signature
    source, item = reached.unit.text, reached.kernel
    body = item.body
    assert body is not None  # what makes an item a kernel
    split = block.fission is not None
    if block.fission is not None:
        edits = Split(block.fission, source, edits).edits()
        indices = indices.partition(", ")[2]  # the thread's index differs within a physical thread
    what = "One logical block" if split else "One logical thread"
    name = f"{item.name}__{'threads' if split else 'thread'}"
    lines = [f"// {what} of {item.name}."]
    own = ("class MiriamIndex",) if split else ()
    if parts.template or own:
        lines.append(_template(parts.template, own))
    first = (f"const MiriamIndex& {_THREADS}",) if split else ()
    lines += [
        listed(f"__device__ MIRIAM_INLINE void {name}", (*first, indices, *parts.taken)),
        render(source, body.start_byte, body.end_byte, edits),
        line_directive("miriam", 1),
    ]
    head, tail = block_bounds(parts.head), block_bounds(parts.tail)
    given = ("const MiriamLaunch miriam", *parts.given)
    after = f" {tail}" if tail else ""
    for form in FORMS:
        lines.append(_template(parts.template, (_FOLD, *(_SHAPE if split else ()))))
        lines.append(
            f"{listed(f'{head} {item.name}__block_{form}', given)}{after} "
            f"{_statements(form, block, name)}"
        )
    return "\n".join(lines)


def _statements(form: str, block: Block, name: str) -> str:
    parts = block.subject.signature
    warps, rows = (str(flag).lower() for flag in (block.warps, block.rows))
    kind = "MiriamThreads" if block.fission is None else _FOLDED
    opening = f"const {kind} {_THREADS}(miriam, {warps}, {rows});"
    if block.index == "table":
        size = _MOST_THREADS if block.fission is None else "miriam_x * miriam_y * miriam_z"
        opening = (
            f"__shared__ unsigned miriam_table[{size}];\n"
            f"  const MiriamTabled<{kind}> {_THREADS}(miriam, {warps}, {rows}, miriam_table);"
        )
    index = f"const uint3 miriam_index = {logical_block(form)};"
    if block.fission is not None:
        types = [f"decltype({_THREADS})", *([parts.arguments[1:-1]] if parts.arguments else [])]
        shape = "dim3(miriam_x, miriam_y, miriam_z)"
        given = (_THREADS, _GIVEN[0], shape, _GIVEN[2], *parts.forwarded)
        call = listed(f"{name}<{', '.join(types)}>", given, indent=4).lstrip()
        return block_wrapper(form, opening, (index, f"{call};"), apart=block.apart)
    given = (f"{_THREADS}.at(miriam_t)", *_GIVEN, *parts.forwarded)
    call = listed(f"{name}{parts.arguments}", given, indent=6).lstrip()
    loop = (
        "for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; "
        "miriam_t += blockDim.x) {"
    )
    return block_wrapper(form, opening, (index, loop, f"  {call};", "}"), apart=block.apart)


def _template(written: str, own: tuple[str, ...]) -> str:
    """The user's ``template <...>`` with parameters before its own."""
    if not own:
        return written
    inside = written.partition("<")[2].rpartition(">")[0].strip()
    return f"template <{', '.join([*own, *([inside] if inside else [])])}>"
