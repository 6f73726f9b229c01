"""Rules about what is written: each is a function that yields what breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from miriam.elastic.cuda.forms import FORMS
from miriam.elastic.cuda.memory import shared_names, unstable_names
from miriam.elastic.cuda.names import is_known_header
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.subject import Refusal, Subject
from miriam.elastic.cuda.syntax import called_name, callee, declarator, find, last_name, text, walk
from miriam.elastic.cuda.unresolved import unknown, unresolved
from miriam.elastic.cuda.waits import waiting_loop

DEEPEST = 150
_MOST_BYTES = 400 << 10
_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_DECLARES = (
    "init_declarator",
    "parameter_declaration",
    "optional_parameter_declaration",
    "declaration",
)
_RESERVED = re.compile(r"miriam_\w*|Miriam\w*|MIRIAM_\w*")
_GRID_WIDE = re.compile(
    r"this_grid|grid_group|this_multi_grid|multi_grid_group|this_cluster|cluster_group|"
    r"__cluster_dims__|__block_size__|cluster_\w+|__cluster\w+|cudaGridDependencySynchronize|"
    r"cudaTriggerProgrammaticLaunchCompletion|GridBarrier\w*"
)
_HIDDEN_INDEX = re.compile(
    r"group_index|block_index|get_sreg_n?ctaid\w*|__nvvm_read_ptx_sreg_n?ctaid\w*|GridEvenShare|"
    r"__builtin_\w*ctaid\w*"
)
_LAUNCHES = re.compile(r"cuda(Launch\w*|DeviceSynchronize|StreamCreate\w*|GetParameterBuffer\w*)")
_ASYNC_BARRIER = re.compile(
    r"cuda::(barrier|pipeline_shared_state)\b|__mbarrier_\w+|cuda::device::barrier\w*"
)
_ASM = re.compile(
    r"\b(bar|barrier)\s*\.|mbarrier|griddepcontrol|setmaxnreg|clusterlaunch|\b(exit|ret)\s*;|"
    r"%(n?tid|n?ctaid|n?clusterid|cluster_n?ctaid|gridid|n?warpid|n?smid|is_explicit_cluster)\b|"
    r"cp\.async\.bulk|cp\.reduce\.async"
)
_ASM_COPY = re.compile(r"cp\.async\b")
_ASM_WAIT = re.compile(r"cp\.async\.wait")


def size(subject: Subject) -> Iterator[Refusal]:
    """A function is longer than anybody writes, and would take minutes to look at."""
    for item in subject.reached.functions:
        if item.node.end_byte - item.start > _MOST_BYTES:
            detail = f"{item.name} has more than {_MOST_BYTES >> 10} KiB"
            yield Refusal("too-large", detail, item.start)


def parse_error(subject: Subject) -> Iterator[Refusal]:
    """The parser did not understand the kernel, or something that it reaches."""
    for item in subject.items:
        if item.node.has_error:
            wrong = next(n for n in walk(item.node) if n.is_error or n.is_missing)
            what = f"{wrong.type!r} is missing" if wrong.is_missing else "syntax not understood"
            yield Refusal("parse-error", what, wrong.start_byte)


def nesting(subject: Subject) -> Iterator[Refusal]:
    """Statements nest more deeply than the analysis goes."""
    for item in subject.reached.functions:
        deep = _deeper_than(item.node, DEEPEST)
        if deep is not None:
            detail = f"statements nest more than {DEEPEST} deep"
            yield Refusal("nesting-too-deep", detail, deep.start_byte)


def _deeper_than(node: Node, limit: int) -> Node | None:
    stack = [(node, 0)]
    while stack:
        current, depth = stack.pop()
        depth += current.type.endswith(("_statement", "_clause", "lambda_expression"))
        if depth > 2 * limit:
            return current
        stack += [(c, depth) for c in current.named_children]
    return None


def reserved_name(subject: Subject) -> Iterator[Refusal]:
    """A name that the generated code uses is taken."""
    kernel = subject.reached.kernel
    forms = (*FORMS, *(f"block_{form}" for form in FORMS))
    ours = {f"{kernel.name}__{form}" for form in (*forms, "body", "thread", "threads")}
    taken = subject.reached.unit.names & ours
    for item in subject.items:
        for word in sorted(w for w in item.words if _RESERVED.fullmatch(w)):
            detail = f"{word}: names that begin so belong to the generated code"
            yield Refusal("reserved-name", detail, subject.word(item, word))
    for name in sorted(taken):
        yield Refusal("reserved-name", f"{name} is taken", kernel.node.start_byte)


def forwarding(subject: Subject) -> Iterator[Refusal]:
    """A parameter or template parameter can not be handed on."""
    kernel = subject.reached.kernel
    problem = subject.signature.problem
    kernels = subject.reached.unit.kernels if subject.signature.template else ()
    if any(k.name == kernel.name and _is_special(k) for k in kernels):
        problem = "the kernel template has a specialization"
    if problem:
        yield Refusal("parameter-forwarding", problem, kernel.node.start_byte)


def _is_special(kernel: Item) -> bool:
    parameters = kernel.node.child_by_field_name("parameters")
    return parameters is not None and not parameters.named_children


def shadowed_index(subject: Subject) -> Iterator[Refusal]:
    """The code declares a name of its own for an index, or takes an index's address."""
    for item in subject.items:
        if not item.words & set(_INDICES):
            continue
        for node in find(item.node, *_DECLARES):
            for child in node.children_by_field_name("declarator"):
                name = declarator(child)
                if name is not None and text(name) in _INDICES:
                    detail = f"{text(name)} is declared anew"
                    yield Refusal("shadowed-index", detail, name.start_byte)


def index_in_method(subject: Subject) -> Iterator[Refusal]:
    """A method, operator or type reads an index, and can not be given it as a parameter."""
    reached = subject.reached
    hidden = {*reached.indices, *reached.virtual}
    owners = [*subject.data, *(i for i in reached.items if i.name.startswith("operator"))]
    for item in owners:
        for word in sorted(item.words & hidden):
            brought_in = item.core.type == "using_declaration"
            where = "brought in by a using-declaration" if brought_in else f"inside {item.name}"
            yield Refusal("index-in-method", f"{word} {where}", subject.word(item, word))
    for item in reached.functions:
        for kind in find(item.node, "struct_specifier", "class_specifier", "union_specifier"):
            words = {text(n) for n in find(kind, "identifier")}
            if words & hidden:
                detail = "a type inside the function reads it"
                yield Refusal("index-in-method", detail, kind.start_byte)


def index_in_functor(subject: Subject) -> Iterator[Refusal]:
    """A device lambda of this file reads an index, and the kernel is a template that may get it."""
    if not subject.signature.template:
        return
    hidden = {*subject.reached.indices, *subject.reached.virtual}
    for item in subject.reached.unit.items:
        if item.kind == "host" and item.words & hidden:
            for node in find(item.node, "lambda_expression"):
                if {text(n) for n in find(node, "identifier")} & hidden:
                    detail = "a lambda that reads a block index may be passed to it"
                    yield Refusal("index-in-functor", detail, node.start_byte)


def index_in_default(subject: Subject) -> Iterator[Refusal]:
    """A default argument reads an index."""
    hidden = {*subject.reached.indices, *subject.reached.virtual}
    for item in (i for i in subject.items if i.signature is not None):
        for node in find(item.node, "optional_parameter_declaration"):
            value = node.child_by_field_name("default_value")
            if value is not None and {text(n) for n in find(value, "identifier")} & hidden:
                detail = "a default argument reads a block index"
                yield Refusal("index-in-default", detail, value.start_byte)


def function_as_value(subject: Subject) -> Iterator[Refusal]:
    """A helper that reads an index is used other than by calling it by its name."""
    virtual = subject.reached.virtual
    for item in (*subject.reached.functions,):
        if not item.words & virtual:
            continue
        called = {n.start_byte: n for n in _called(item, virtual)}
        heads = item.signature
        own = heads.child_by_field_name("declarator") if heads is not None else None
        for node in find(item.node, "identifier", "type_identifier", "field_identifier"):
            inside = own is not None and own.start_byte <= node.start_byte < own.end_byte
            if text(node) in virtual and node.start_byte not in called and not inside:
                detail = f"{text(node)} reads a block index and is used other than by a call"
                yield Refusal("function-as-value", detail, node.start_byte)


def _called(item: Item, names: frozenset[str]) -> Iterator[Node]:
    """The name nodes of the calls to ``names``."""
    for call in find(item.node, "call_expression"):
        function = callee(call)
        if function is not None and last_name(function) in names:
            current = function
            while current.type != "identifier":
                below = current.child_by_field_name("name")
                if below is None:
                    break
                current = below
            yield current


def undefined_helper(subject: Subject) -> Iterator[Refusal]:
    """A device function is only declared: its body, in another file, may read an index."""
    defined = {f.name for f in subject.reached.functions}
    for item in subject.reached.items:
        if item.kind == "device" and item.body is None and item.name not in defined:
            detail = f"{item.name} has no body here"
            yield Refusal("undefined-helper", detail, item.node.start_byte)


def static_variable(subject: Subject) -> Iterator[Refusal]:
    """A function keeps a variable between launches, which the forms do not share."""
    for item in subject.reached.functions:
        if "static" not in item.words or item.body is None:
            continue
        for node in find(item.body, "declaration"):
            head = set(re.findall(r"\w+", text(node)))
            if "static" in head and not head & {"const", "constexpr", "__shared__"}:
                yield Refusal("static-variable", "a static variable", node.start_byte)


def grid_wide(subject: Subject) -> Iterator[Refusal]:
    """All blocks of the grid, or of a cluster, work together."""
    for item in subject.items:
        for word in sorted(w for w in item.words if _GRID_WIDE.fullmatch(w)):
            detail = f"{word}: blocks that work together must all be resident"
            yield Refusal("grid-wide", detail, subject.word(item, word))


def hidden_index(subject: Subject) -> Iterator[Refusal]:
    """The block's index is read through a library or a builtin."""
    for item in subject.items:
        for word in sorted(w for w in item.words if _HIDDEN_INDEX.fullmatch(w)):
            if _is_called(item, word):
                detail = f"{word} reads the physical block's index"
                yield Refusal("hidden-index", detail, subject.word(item, word))


def _is_called(item: Item, word: str) -> bool:
    if any(called_name(c) == word for c in find(item.node, "call_expression")):
        return True
    return word == "GridEvenShare"


def dynamic_parallelism(subject: Subject) -> Iterator[Refusal]:
    """The kernel launches kernels."""
    for item in subject.items:
        for node in find(item.node, "kernel_call_syntax"):
            yield Refusal("dynamic-parallelism", "it launches a kernel", node.start_byte)
        for word in sorted(w for w in item.words if _LAUNCHES.fullmatch(w)):
            yield Refusal("dynamic-parallelism", word, subject.word(item, word))


def inline_assembly(subject: Subject) -> Iterator[Refusal]:
    """Assembly that synchronises, leaves, or reads an index."""
    code = [(n, text(n)) for i in subject.items for n in find(i.node, "gnu_asm_expression")]
    waits = any(_ASM_WAIT.search(t) for _, t in code)
    for node, written in code:
        found = _ASM.search(written)
        if found:
            detail = f"{found[0].strip()} in inline assembly"
            yield Refusal("inline-assembly", detail, node.start_byte)
        elif _ASM_COPY.search(written) and not waits:
            detail = "an asynchronous copy without a wait"
            yield Refusal("inline-assembly", detail, node.start_byte)


def async_barrier(subject: Subject) -> Iterator[Refusal]:
    """A barrier object in shared memory would be initialised again while it is in use."""
    for item in subject.items:
        found = _ASYNC_BARRIER.search(text(item.node))
        if found:
            at = subject.word(item, found[0])
            yield Refusal("async-barrier", f"{found[0]} lives in shared memory", at)


def spin_wait(subject: Subject) -> Iterator[Refusal]:
    """A loop ends only when another block writes."""
    shared, unstable = shared_names(subject.items), unstable_names(subject.items)
    for item in subject.items:
        if "__nanosleep" in item.words:
            detail = "__nanosleep: it waits for another block"
            yield Refusal("spin-wait", detail, subject.word(item, "__nanosleep"))
        loop = waiting_loop(item.node, shared, unstable)
        if loop is not None:
            detail = "the loop may wait for another block, which may not be resident"
            yield Refusal("spin-wait", detail, loop.start_byte)


def missing_include(subject: Subject) -> Iterator[Refusal]:
    """A header was not found, and the kernel uses a name that it may define."""
    includes = (i.node for i in subject.reached.unit.headers if i.kind == "include")
    missing = [n for n in includes if not is_known_header(included(n))]
    needs = sorted(unknown(unresolved(subject))) if missing else []
    if needs:
        detail = f"{included(missing[0])} was not found (-I); it may define {', '.join(needs[:3])}"
        yield Refusal("missing-include", detail, missing[0].start_byte)


def included(node: Node) -> str:
    """The path in an include directive."""
    path = node.child_by_field_name("path")
    return text(path).strip('<>" ') if path is not None else ""
