"""Options that commands on CUDA C++ files share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from miriam.errors import UnknownNameError, UsageError

IncludeDirs = Annotated[
    list[Path] | None, typer.Option("--include", "-I", help="Look for includes here too.")
]
Defines = Annotated[
    list[str] | None, typer.Option("--define", "-D", help="A macro, X or X=1.", metavar="X=1")
]

Archs = Annotated[
    list[str] | None,
    typer.Option("--arch", help="sm_87 if left out; may be repeated, or a list with commas."),
]


def chosen_archs(archs: Sequence[str] | None) -> tuple[str, ...]:
    """The architectures of ``--arch``, each once; UnknownNameError for one nobody knows."""
    from miriam.kernels import ARCHITECTURES

    named = [name for group in archs or ("sm_87",) for name in group.split(",")]
    for name in named:
        if name not in ARCHITECTURES:
            raise UnknownNameError("--arch", name, ARCHITECTURES)
    return tuple(dict.fromkeys(named))


def defined(defines: Sequence[str] | None) -> dict[str, str]:
    """The macros of ``-D`` by name; one without a value is 1, as for a compiler."""
    macros = {}
    for define in defines or ():
        name, _, value = define.partition("=")
        if not name.isidentifier():
            raise UsageError("-D", "NAME or NAME=VALUE", define)
        macros[name] = value if "=" in define else "1"
    return macros


def keep_inputs(targets: Mapping[str, str | None], *inputs: Path) -> None:
    """UsageError for an option whose target is one of the files that the command reads."""
    for option, target in targets.items():
        for source in inputs:
            if target and Path(target).exists() and source.exists() and source.samefile(target):
                raise UsageError(option, "another file than what is read", target)
