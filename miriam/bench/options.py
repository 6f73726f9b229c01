"""What a benchmark was asked for: enough to run it again."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.bench.machine import Machine
from miriam.errors import UnknownNameError, UsageError

_SECOND_NS = 1_000_000_000
GEOMETRIES = ("ours", "tango")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A benchmark by name and all that its figures depend on, but for Miriam's version.

    ``seconds``: device time of each row. ``compute``: whether outputs are computed and checked.
    ``workloads``: those chosen of the benchmark's own. ``in_flight``: requests in flight of a
    normal task. ``geometry``: ``tango`` takes the public suite's launch geometry of each
    network. ``gaps_us`` and ``worlds`` (SMs; 0 for the whole GPU): axes of ``pairs``. ``scaled``:
    multiples of the simulated GPU's parameters.
    """

    benchmark: str
    device: str
    policies: tuple[str, ...]
    seconds: float
    seed: int
    compute: bool = False
    workloads: tuple[str, ...] = ()
    in_flight: int = 4
    geometry: str = "ours"
    gaps_us: tuple[float, ...] = ()
    worlds: tuple[int, ...] = ()
    scaled: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        # A NaN fails this comparison too.
        if not 1 <= self.seconds * _SECOND_NS < 2**62:
            raise UsageError("seconds", "a finite number of at least 1e-9", self.seconds)
        if self.seed < 0:
            raise UsageError("seed", "not negative", self.seed)
        if self.in_flight < 1:
            raise UsageError("in_flight", "at least 1", self.in_flight)
        if self.geometry not in GEOMETRIES:
            raise UnknownNameError("geometry", self.geometry, GEOMETRIES)
        for field, names in (("policy", self.policies), ("workload", self.workloads)):
            if len(set(names)) != len(names) or (field == "policy" and not names):
                raise UsageError(field, "at least one name, each once", ",".join(names))

    @property
    def window_ns(self) -> int:
        """The window of a row."""
        return round(self.seconds * _SECOND_NS)

    @property
    def machine(self) -> Machine:
        """What it runs on."""
        return Machine(self.device, self.scaled)

    def network(self, name: str) -> str:
        """The network ``name`` in the chosen launch geometry."""
        return name if self.geometry == "ours" else f"{name}-{self.geometry}"

    def pair(self, text: str) -> tuple[str, str]:
        """The critical and the normal network of ``critical+normal``; UsageError if it is not."""
        critical, joint, normal = text.partition("+")
        if not joint or not critical or not normal:
            raise UsageError("workload", "two networks, critical+normal", text)
        return critical, normal
