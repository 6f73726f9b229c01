"""A step from one's own CUDA C++: what is compiled, what stays rigid, and the example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from miriam.errors import SourceError, UnknownNameError
from miriam.kernels import Dim3, Pointer, Scalar, Step
from miriam.models.own import compile_step

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_program.py"
KERNELS = ROOT / "tests" / "kernels" / "two_steps.cu"


def made(source: Path, kernel: str) -> Step:
    args = (Pointer("x"), Pointer("sums"), Scalar(1_000))
    grid, block = Dim3(16), Dim3(64)
    return compile_step(source, kernel, "sm_90", grid=grid, block=block, args=args, output="sums")


def test_a_step_has_what_its_compiled_forms_need() -> None:
    step = made(KERNELS, "block_sums")
    assert step.rigid is None
    assert step.name == "block_sums"
    assert step.kernel.original.resources.registers > 0
    assert step.kernel.original.resources.static_shared_bytes == 64 * 4
    assert step.kernel.elastic is not None
    assert {v.fold for v in step.kernel.variants} <= {1, 2, 4}


def test_a_kernel_that_the_generator_refuses_is_a_rigid_step(tmp_path: Path) -> None:
    source = tmp_path / "own.cu"
    source.write_text(
        "#include <cooperative_groups.h>\n"
        "__global__ void together(float* x, float* sums, int n) {\n"
        "  cooperative_groups::this_grid().sync();\n"
        "  sums[blockIdx.x] = x[0];\n"
        "}\n"
    )
    step = made(source, "together")
    assert step.rigid is not None and step.rigid.startswith("grid-wide: this_grid")
    assert step.kernel.elastic is None
    assert [v.threads for v in step.kernel.variants] == [64]


def test_a_kernel_that_is_not_there_or_no_cuda(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="block_sums"):
        made(KERNELS, "block_sum")
    source = tmp_path / "own.cu"
    source.write_text("__global__ void wrong(float* x) { x[0] = nothing; }\n")
    with pytest.raises(SourceError, match="nothing"):
        made(source, "wrong")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["sim:orin", "host"])
def test_the_example_runs(device: str) -> None:
    command = [sys.executable, str(EXAMPLE), "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "the filter's outputs are numpy's" in done.stdout
