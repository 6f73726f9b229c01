"""Faults of the generator that surveys of public code brought to light."""

from __future__ import annotations

from pathlib import Path

import pytest

import miriam


@pytest.mark.parametrize(
    ("header", "there"),
    [("<nvml_of_nobody.h>", 0), ('"beside.h"', 1), ("<beside.h>", 0), ("<cuda_fp8.h>", 1)],
)
def test_has_include_is_answered(tmp_path: Path, header: str, there: int) -> None:
    (tmp_path / "beside.h").write_text("")
    source = tmp_path / "k.cu"
    source.write_text(
        "#if defined(__has_include)\n"
        f"#if __has_include({header})\n#define THERE 1\n#else\n#define THERE 0\n#endif\n#endif\n"
        "__global__ void k(int* x) { x[0] = THERE; }\n"
    )
    assert f"x[0] = {there};" in miriam.elasticize(source).source


def test_has_include_is_answered_in_headers(tmp_path: Path) -> None:
    (tmp_path / "deep.h").write_text('#if __has_include("deep.h")\n#define N 7\n#endif\n')
    source = tmp_path / "k.cu"
    source.write_text('#include "deep.h"\n__global__ void k(int* x) { x[0] = N; }\n')
    assert "x[0] = 7;" in miriam.elasticize(source).source
