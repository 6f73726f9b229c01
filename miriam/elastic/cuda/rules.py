"""All rules in order. Each is described, before and after, in docs/transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from miriam.elastic.cuda import indirect, structure
from miriam.elastic.cuda.calls import with_barriers
from miriam.elastic.cuda.flow import Flow, examine
from miriam.elastic.cuda.subject import Refusal, Subject

Rule = Callable[[Subject], Iterator[Refusal]]

# The first five make sure that the others can be asked.
RULES: tuple[Rule, ...] = (
    structure.size,
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


# What a helper has to allow, once it gets parameters that it did not have.
_CHANGED: tuple[Rule, ...] = (
    structure.index_in_method,
    structure.function_as_value,
    indirect.given_function,
)


def judge(subject: Subject) -> tuple[Subject, Flow] | Refusal:
    """The first rule that ``subject`` breaks, or what its forms need.

    Where barriers have to count who is done, helpers with barriers change too: the subject that
    comes back says so.
    """
    refusal = _first(RULES, subject)
    flow = refusal or examine(subject)
    if isinstance(flow, Refusal):
        return flow
    if flow.counted:
        subject = replace(subject, reached=with_barriers(subject.reached))
    return _first(_CHANGED, subject) or (subject, flow)


def _first(rules: tuple[Rule, ...], subject: Subject) -> Refusal | None:
    return next((refusal for rule in rules for refusal in rule(subject)), None)
