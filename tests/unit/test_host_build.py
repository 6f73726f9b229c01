"""Compiling: errors point at the user's line, and nothing is compiled twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from miriam.devices.host import Host
from miriam.devices.host.build import Builder
from miriam.errors import MiriamError, MissingCapabilityError, SourceError, UsageError
from miriam.kernels import Buffer, Program
from tests.kernels.programs import single

KERNEL = '#include "part.cuh"\n__global__ void fill(float* out) { out[0] = kValue; }\n'


def program(folder: Path, text: str, name: str = "fill") -> Program:
    source = folder / "kernel.cu"
    source.write_text(text)
    return single(source, name, [Buffer("out", (1,), "output")])


def value(cache: Path, made: Program) -> float:
    request = Host(cache_dir=cache).load(made, {}).request()
    request.run_all()
    return float(request.read("out").astype(np.float32)[0])


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines of every compilation from now on."""
    seen: list[list[str]] = []
    original = subprocess.run

    def spy(command: list[str], **options: object) -> object:
        if "-o" in command:
            seen.append(command)
        return original(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", spy)
    return seen


def test_a_compile_error_names_file_and_line_and_shows_it(tmp_path: Path) -> None:
    text = (
        "__global__ void fill(float* out) {\n"
        "  extern __shared__\n"
        "      float line[];\n"
        "  out[0] = missing;\n"
        "}\n"
    )
    with pytest.raises(SourceError) as caught:
        Host(cache_dir=tmp_path).load(program(tmp_path, text), {})
    assert caught.value.path == str(tmp_path / "kernel.cu")
    assert caught.value.line == 4
    assert "kernel.cu:4: error: 'missing' was not declared in this scope" in str(caught.value)
    assert caught.value.excerpt == "      out[0] = missing;\n               ^"


def test_a_compile_error_in_a_header_names_the_header(tmp_path: Path) -> None:
    (tmp_path / "part.cuh").write_text("#pragma once\n\nint kValue = ;\n")
    with pytest.raises(SourceError, match=r"part.cuh:3: error: expected"):
        Host(cache_dir=tmp_path).load(program(tmp_path, KERNEL), {})


def test_lines_after_an_include_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "part.cuh").write_text("#pragma once\nconstexpr float kValue = 1;\n\n\n")
    with pytest.raises(SourceError) as caught:
        Host(cache_dir=tmp_path).load(program(tmp_path, KERNEL + "\nint x = oops;\n"), {})
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "kernel.cu"), 4)


def test_a_header_of_several_files_is_taken_once(tmp_path: Path) -> None:
    (tmp_path / "part.cuh").write_text("#pragma once\nconstexpr float kValue = 3;\n")
    (tmp_path / "more.cuh").write_text('#pragma once\n#include "part.cuh"\n')
    text = '#include "more.cuh"\n' + KERNEL
    assert value(tmp_path, program(tmp_path, text)) == 3.0


@pytest.mark.parametrize("declaration", ["extern __shared__ float a[];", "__shared__ float a[2];"])
def test_shared_memory_at_file_scope_says_where_it_belongs(
    tmp_path: Path, declaration: str
) -> None:
    text = f"{declaration}\n__global__ void fill(float* out) {{}}\n"
    with pytest.raises(
        SourceError,
        match=r"kernel.cu:1: error: static assertion failed: declare it inside a function",
    ):
        Host(cache_dir=tmp_path).load(program(tmp_path, text), {})


@pytest.mark.parametrize("name", ["fil", "fill<3>"])
def test_an_unknown_kernel_is_a_usage_error(tmp_path: Path, name: str) -> None:
    text = "__global__ void fill(float* out) {}\n"
    with pytest.raises(UsageError, match=r"kernel: a name expression of a kernel in .*kernel.cu"):
        Host(cache_dir=tmp_path).load(program(tmp_path, text, name), {})


def test_a_missing_source_is_a_usage_error(tmp_path: Path) -> None:
    made = single(tmp_path / "none.cu", "fill", [Buffer("out", (1,), "output")])
    with pytest.raises(UsageError, match="kernel source: a readable UTF-8 file"):
        Host(cache_dir=tmp_path).load(made, {})


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingCapabilityError, match=r"no g\+\+ on the PATH.*apt-get install g"):
        Host()


def test_an_old_compiler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho 11.4.0\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingCapabilityError, match=r"g\+\+ is version 11.4.0; install g\+\+ 12"):
        Host()


def test_a_cache_hit_does_not_compile(tmp_path: Path, compilations: list[list[str]]) -> None:
    (tmp_path / "part.cuh").write_text("constexpr float kValue = 4;\n")
    made = program(tmp_path, KERNEL)
    cache = tmp_path / "cache"
    assert value(cache, made) == 4.0
    count = len(compilations)
    assert value(cache, made) == 4.0
    assert len(compilations) == count


def test_a_changed_header_is_compiled_again(tmp_path: Path, compilations: list[list[str]]) -> None:
    header = tmp_path / "part.cuh"
    for number in (5, 6):
        header.write_text(f"constexpr float kValue = {number};\n")
        assert value(tmp_path / "cache", program(tmp_path, KERNEL)) == number


@pytest.mark.parametrize("damage", [b"", b"no object at all", None])
def test_a_damaged_object_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text("__global__ void fill(float* out) {}\n")
    builder = Builder(tmp_path / "cache")
    made = builder.kernels(source, ["fill"])
    good = made.read_bytes()
    made.write_bytes(good[: len(good) // 2] if damage is None else damage)
    assert builder.kernels(source, ["fill"]) == made
    assert len(made.read_bytes()) == len(good)
    assert [p.name for p in made.parent.iterdir()] == [made.name]


def test_a_function_that_nobody_defines_is_an_error_of_ours(tmp_path: Path) -> None:
    text = "__device__ float missing();\n__global__ void fill(float* out) { out[0] = missing(); }\n"
    made = program(tmp_path, text)
    for _ in range(2):  # fresh, then from the cache
        with pytest.raises(MiriamError, match=r"kernel.cu: .* undefined symbol: .*missing.*define"):
            Host(cache_dir=tmp_path / "cache").load(made, {})
