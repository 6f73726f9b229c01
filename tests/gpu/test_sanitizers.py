"""The elastic kernels under compute-sanitizer."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from miriam.devices.cuda.device import CudaDevice

TOOL = shutil.which("compute-sanitizer")
NETWORKS = ("alexnet", "squeezenet", "cifarnet", "gru", "lstm")


@pytest.mark.skipif(TOOL is None, reason="compute-sanitizer is not on PATH")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_elastic_kernels_are_clean(device: CudaDevice, tool: str) -> None:
    command = [str(TOOL), "--tool", tool, "--error-exitcode", "9"]
    child = [sys.executable, "-m", "tests.gpu.sanitized", *NETWORKS]
    done = subprocess.run(
        [*command, *child], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-1_000:]
    assert "launches" in done.stdout
