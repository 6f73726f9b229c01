"""What a kernel's forms come to against its original."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from miriam.check.forms import FORMS, folded
from miriam.check.subject import State, Subject
from miriam.errors import ExecutionError, VerificationError

Outcome = Literal["equal", "different", "nondeterministic", "vacuous", "refused", "error"]


@dataclass(frozen=True, slots=True)
class FormVerdict:
    """Whether a form left the original's bytes and ran each logical block once.

    ``detail``: the first difference, or else the first block that did not run once.
    """

    form: str
    equal: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class KernelVerdict:
    """One kernel; ``reason`` says why where the verdict is not ``equal``."""

    name: str
    verdict: Outcome
    reason: str = ""
    forms: tuple[FormVerdict, ...] = ()


def judge(name: str, subject: Subject, seed: int) -> KernelVerdict:
    """Run the original in three block orders, then every form, and compare the bytes."""
    try:
        state = subject.run(lambda: subject.original(schedule="given"))
        again = _in_other_orders(subject, state, seed)
        if again is not None:
            return KernelVerdict(name, "nondeterministic", again)
        if not subject.changed(state):
            return KernelVerdict(name, "vacuous", "the original changes no byte of its arrays")
        subject.poison_outputs(state)
        state = subject.run(subject.original)
    except ExecutionError as error:
        return KernelVerdict(name, "error", f"original: {error}")
    return _compared(name, subject, state, seed)


def _in_other_orders(subject: Subject, state: State, seed: int) -> str | None:
    backwards = range(subject.blocks - 1, -1, -1)
    orders = {
        "backwards": lambda: subject.original(backwards, schedule="given", seed=seed + 1),
        "shuffled": lambda: subject.original(seed=seed + 2),
    }
    for order, work in orders.items():
        found = subject.difference(state, subject.run(work))
        if found is not None:
            return f"the original differs from itself with its blocks {order}: {found}"
    return None


def _compared(name: str, subject: Subject, state: State, seed: int) -> KernelVerdict:
    verdicts = []
    for form, work in {**FORMS, **{fold: folded(fold) for fold in subject.folds}}.items():
        random = Random(f"{seed} {name} {form}")
        try:
            got = subject.run(lambda w=work, r=random: w(subject, r))  # type: ignore[misc]
        except VerificationError as error:
            verdicts.append(FormVerdict(form, False, str(error)))
        except ExecutionError as error:
            verdicts.append(FormVerdict(form, False, str(error)))
            return KernelVerdict(name, "error", f"{form}: {error}", tuple(verdicts))
        else:
            found = subject.difference(state, got) or subject.miscounted()
            verdicts.append(FormVerdict(form, found is None, found or ""))
    worst = next((v for v in verdicts if not v.equal), None)
    if worst is None:
        return KernelVerdict(name, "equal", "", tuple(verdicts))
    return KernelVerdict(name, "different", f"{worst.form}: {worst.detail}", tuple(verdicts))
