"""What ``miriam verify`` answers, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from miriam.check.judge import KernelVerdict, Outcome

_STYLES: dict[Outcome, str] = {"equal": "green", "refused": "yellow"}


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """``miriam.verify/1``: kernels in the order of the launch file, forms in the order run."""

    schema: Literal["miriam.verify/1"] = "miriam.verify/1"
    seed: int
    kernels: tuple[KernelVerdict, ...]


def encode(verdicts: Sequence[KernelVerdict], seed: int) -> bytes:
    """The report as JSON."""
    report = VerifyReport(seed=seed, kernels=tuple(verdicts))
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def show(verdicts: Sequence[KernelVerdict], console: Console) -> None:
    """A row per kernel, and below them why a verdict is not ``equal``."""
    table = Table(box=None, pad_edge=False)
    for head in ("kernel", "verdict", "forms"):
        table.add_column(head)
    for verdict in verdicts:
        forms = Text(", ".join(f.form for f in verdict.forms if f.equal))
        for form in verdict.forms:
            if not form.equal:
                forms.append(f"{', ' if forms else ''}{form.form} differs", "red")
        style = _STYLES.get(verdict.verdict, "red")
        table.add_row(Text(verdict.name), Text(verdict.verdict, style), forms)
    console.print(table)
    for verdict in verdicts:
        if verdict.reason:
            console.print(f"{verdict.name}: {verdict.reason}", markup=False, highlight=False)
