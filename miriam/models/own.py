"""A step from one's own CUDA C++: compiled, and elastic where the generator allows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from miriam.compile import compile_cubin
from miriam.elastic import elasticize
from miriam.kernels import Argument, Cost, Dim3, KernelSpec, Resources, Step, Variant
from miriam.models.builder import variants
from miriam.models.measured import Needs
from miriam.models.resources import measure

UNKNOWN_COST = Cost(0.0, 0.0, 0.0)
"""Good enough for a GPU, where steps are measured; the simulator takes such a step for free."""


def compile_step(
    source: Path,
    kernel: str,
    arch: str,
    *,
    grid: Dim3,
    block: Dim3,
    args: Sequence[Argument],
    output: str,
    cost: Cost = UNKNOWN_COST,
    name: str = "",
    dynamic_shared_bytes: int = 0,
) -> Step:
    """The launch of ``kernel`` (a name expression) of the file ``source``, for ``arch``.

    ``args``: its arguments in order; ``output``: the buffer that it writes; ``cost``: what one
    block asks of the machine; ``name``: of the step, the kernel's by default. Its forms are
    compiled to know what they need. A kernel that the generator refuses gives a rigid step with
    the reason. SourceError where the compiler or the parser refuses the file, UsageError for a
    kernel that is not in it, MissingCapabilityError without the extras ``cuda`` and ``elastic``.
    """
    verdict = elasticize(source, arch=arch).kernel(kernel).yields
    unknown = (Variant(block.size, Resources(0, 0)),)
    spec = KernelSpec(kernel, str(source), grid, block, unknown, dynamic_shared_bytes)
    if verdict.ok:
        needs, rigid = measure(spec, arch), None
    else:
        needs = Needs(compile_cubin(source, [kernel], arch).resources[kernel])
        rigid = f"{verdict.reason}: {verdict.detail}"
    forms = variants(block.size, needs)
    spec = KernelSpec(
        kernel, str(source), grid, block, forms, dynamic_shared_bytes, elastic=needs.elastic
    )
    label = name or kernel
    return Step(label, label, spec, tuple(args), cost, output, rigid)
