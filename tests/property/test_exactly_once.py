"""Each logical block runs exactly once: cut, on racing blocks, stopped anywhere and resumed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miriam
from miriam.check.forms import FORMS
from miriam.check.launchfile import Array, KernelLaunch
from miriam.check.subject import Range, Subject
from miriam.devices.host import Host, HostKernel
from miriam.kernels import Dim3

SOURCE = Path(__file__).parent.parent / "kernels" / "verify.cu"
KERNEL = "count_blocks"


@cache
def compiled() -> tuple[Host, dict[str, HostKernel]]:
    kernel = miriam.elasticize(SOURCE, kernels=[KERNEL]).kernel(KERNEL)
    entries = {"original": KERNEL, **kernel.entries}
    host = Host()
    text = f"{kernel.original}\n#define MIRIAM_HAVE_ORIGINALS\n{kernel.source}"
    made = host.compile(SOURCE, list(entries.values()), text)
    return host, {form: made[entry] for form, entry in entries.items()}


@given(
    grid=st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 4)),
    threads=st.sampled_from([1, 3, 32, 65]),
    form=st.sampled_from(sorted(FORMS)),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=60)
def test_every_logical_block_runs_once(
    grid: tuple[int, int, int], threads: int, form: str, seed: int
) -> None:
    host, kernels = compiled()
    extent = Dim3(*grid)
    runs = Array("uint32", extent.size, "zeros")
    launch = KernelLaunch(KERNEL, KERNEL, extent, Dim3(threads), (runs,))
    subject = Subject(host, launch, kernels, seed)
    counts, _ = subject.run(lambda: FORMS[form](subject, Random(seed)))
    np.testing.assert_array_equal(counts, np.ones(extent.size, np.uint32))


def test_a_yield_stops_before_the_end_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    host, kernels = compiled()
    launch = KernelLaunch(KERNEL, KERNEL, Dim3(4_000), Dim3(32), (Array("uint32", 4_000, "zeros"),))
    subject, claimed = Subject(host, launch, kernels, 1), []
    resume = Subject.resume

    def spy(self: Subject, part: Range, physical: int, seed: int, fold: str = "") -> None:
        resume(self, part, physical, seed, fold)
        claimed.append((part, int(self.words[0])))

    monkeypatch.setattr(Subject, "resume", spy)
    counts, _ = subject.run(lambda: FORMS["yield"](subject, Random(3)))
    assert counts.tolist() == [1] * 4_000
    assert any(0 < claims < part.count for part, claims in claimed)
    # Blocks that find nothing left have claimed all the same.
    assert all(claims <= part.count + 3 for part, claims in claimed)
