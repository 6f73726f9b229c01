"""Kernels: what is launched, in which compiled forms, and what each form needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from miriam.errors import UsageError


@dataclass(frozen=True, slots=True)
class Dim3:
    """An extent in three dimensions, x fastest, as in CUDA."""

    x: int
    y: int = 1
    z: int = 1

    @property
    def size(self) -> int:
        """Number of points."""
        return self.x * self.y * self.z

    def unflatten(self, index: int) -> tuple[int, int, int]:
        """Coordinates (x, y, z) of the point with linear ``index``."""
        return index % self.x, index // self.x % self.y, index // (self.x * self.y)


@dataclass(frozen=True, slots=True)
class Resources:
    """What the compiler reports for one form of a kernel on one architecture."""

    registers: int
    static_shared_bytes: int
    local_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled form: ``threads`` physical threads run one logical block.

    ``fold`` logical threads share a physical one (elastic block N:1); the resources of a form
    with a fold above 1 are those of its yield form.
    """

    threads: int
    resources: Resources
    fold: int = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise UsageError("variant threads", "at least one", self.threads)


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One launch configuration of one kernel.

    ``name`` is the C++ name expression (``conv2d<3, 1>``), ``source`` the path of its CUDA C++
    file, ``grid`` the logical grid and ``block`` the threads of a logical block.
    ``variants[0]`` is the original; the others run the same logical blocks with fewer threads.
    ``elastic`` is what its yield form needs, None where that was not compiled.
    """

    name: str
    source: str
    grid: Dim3
    block: Dim3
    variants: tuple[Variant, ...]
    dynamic_shared_bytes: int = 0
    elastic: Resources | None = None
    blocks: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", self.grid.size)
        if min(self.grid.x, self.grid.y, self.grid.z) < 1:
            raise UsageError(f"kernel {self.name} grid", "at least one logical block", self.grid)
        if not self.variants or self.variants[0].threads != self.block.size:
            raise UsageError(
                f"kernel {self.name} variants",
                f"the first is the original with {self.block.size} threads",
                [v.threads for v in self.variants],
            )

    @property
    def threads(self) -> int:
        """Threads of a logical block."""
        return self.block.size

    @property
    def original(self) -> Variant:
        """The kernel as its author wrote it."""
        return self.variants[0]

    def variant(self, threads: int) -> Variant:
        """The form with ``threads`` physical threads per block; UsageError if there is none."""
        for candidate in self.variants:
            if candidate.threads == threads:
                return candidate
        raise UsageError(
            f"kernel {self.name} threads",
            f"one of {[v.threads for v in self.variants]}",
            threads,
        )
