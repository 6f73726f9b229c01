"""The example that slices and stops a kernel: verified on the CPU, compiled where nvcc is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import miriam

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_kernel_of_the_example_is_equal_in_every_form() -> None:
    (verdict,) = miriam.verify(EXAMPLES / "mandelbrot.cu", EXAMPLES / "mandelbrot.toml")
    assert (verdict.verdict, verdict.reason) == ("equal", "")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on the PATH")
def test_the_example_compiles_with_nvcc(tmp_path: Path) -> None:
    elastic = miriam.elasticize(EXAMPLES / "mandelbrot.cu", arch="sm_75")
    (tmp_path / "mandelbrot_elastic.cuh").write_text(elastic.source)
    command = ["nvcc", "-arch=sm_75", "-Werror=all-warnings", "-c", f"-I{tmp_path}"]
    files = [str(EXAMPLES / "slice_and_stop.cu"), "-o", str(tmp_path / "example.o")]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
