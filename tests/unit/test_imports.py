"""`import miriam` stays light: what is heavy or extra is imported where it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

EXTRAS = {
    *("torch", "matplotlib", "cuda", "elftools", "safetensors", "PIL", "simpy", "hypothesis"),
    *("tree_sitter", "tree_sitter_cuda", "pcpp"),
}
COMMAND_LINE = {"typer", "click", "rich"}


def imported(*modules: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after importing ``modules``."""
    code = f"import sys, {', '.join(modules)}; print(*{{m.partition('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_alone_imports_nothing_heavy() -> None:
    assert imported("miriam") & (EXTRAS | COMMAND_LINE | {"numpy", "msgspec"}) == set()


@pytest.mark.parametrize(
    "folder", ["kernels", "elastic", "compile", "shrink", "coordinator", "devices", "devices.host"]
)
def test_a_core_folder_needs_no_extra(folder: str) -> None:
    assert imported(f"miriam.{folder}") & (EXTRAS | COMMAND_LINE) == set()


@pytest.mark.parametrize("folder", ["models", "bench", "cli"])
def test_an_outer_folder_needs_no_extra(folder: str) -> None:
    assert imported(f"miriam.{folder}") & EXTRAS == set()
