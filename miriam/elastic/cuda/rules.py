"""All rules in order. Each is described, before and after, in docs/transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from miriam.elastic.cuda import indirect, structure
from miriam.elastic.cuda.flow import Flow, examine
from miriam.elastic.cuda.subject import Refusal, Subject

Rule = Callable[[Subject], Iterator[Refusal]]

# The first four make sure that the others can be asked.
RULES: tuple[Rule, ...] = (
    structure.parse_error,
    structure.nesting,
    structure.reserved_name,
    structure.forwarding,
    structure.shadowed_index,
    structure.grid_wide,
    structure.hidden_index,
    structure.dynamic_parallelism,
    structure.inline_assembly,
    structure.async_barrier,
    structure.index_in_method,
    structure.index_in_functor,
    structure.index_in_default,
    structure.function_as_value,
    structure.undefined_helper,
    indirect.given_function,
    indirect.function_pointer,
    structure.static_variable,
    structure.missing_include,
    structure.spin_wait,
)


def judge(subject: Subject) -> Flow | Refusal:
    """The first rule that ``subject`` breaks, or what its forms need."""
    for rule in RULES:
        for refusal in rule(subject):
            return refusal
    return examine(subject)
