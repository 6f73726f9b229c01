"""Kernels from seeds, made elastic and compared with their originals as ``miriam verify`` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import miriam
from miriam import check
from miriam.elastic import Elasticized
from tests.fuzz.kernels import file_of, generate

SEEDS = Path(__file__).parent / "seeds.txt"
PER_FILE = 20
MOST_REFUSED = 0.1


@dataclass(frozen=True, slots=True)
class Fault:
    """A kernel that was not equal in all forms: the wrong ones, none where it never ran."""

    seed: int
    kernel: str
    forms: tuple[str, ...]
    detail: str

    def __str__(self) -> str:
        forms = ", ".join(self.forms) or "none"
        return f"seed {self.seed}, kernel {self.kernel}, wrong forms {forms}: {self.detail}"


@dataclass(slots=True)
class Tally:
    """What came out of the seeds; ``refused``: seeds by the reason of the refusal.

    ``folded``: how many of the equal ones are so on fewer threads per block too.
    """

    equal: int = 0
    folded: int = 0
    refused: dict[str, list[int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @property
    def all(self) -> int:
        """How many kernels were judged."""
        return self.equal + self.refusals + len(self.faults)

    @property
    def refusals(self) -> int:
        """How many kernels were refused."""
        return sum(map(len, self.refused.values()))

    def add(self, other: Tally) -> None:
        """Count the kernels of ``other`` too."""
        self.equal += other.equal
        self.folded += other.folded
        self.faults += other.faults
        for reason, seeds in other.refused.items():
            self.refused.setdefault(reason, []).extend(seeds)

    def problems(self) -> Iterator[str]:
        """Each fault, and too many refusals."""
        yield from map(str, self.faults)
        if self.refusals > MOST_REFUSED * self.all:
            yield f"{self.refusals} of {self.all} well-formed kernels were refused: {self.refused}"

    def __str__(self) -> str:
        reasons = Counter({reason: len(seeds) for reason, seeds in self.refused.items()})
        why = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
        return (
            f"{self.all} kernels: {self.equal} equal ({self.folded} of them on fewer threads too), "
            f"{self.refusals} refused"
            f"{f' ({why})' if why else ''}, {len(self.faults)} faults"
        )


def run(
    seeds: Sequence[int],
    folder: Path,
    change: Callable[[str], str] = lambda text: text,
    seconds: float = 60.0,
) -> Tally:
    """Judge the kernels of ``seeds``, in one file in ``folder``, which is kept on a fault.

    ``change`` is made to the emitted text: what a wrong emitter would do. A kernel may take
    ``seconds``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seeds_{seeds[0]}_{seeds[-1]}.cu"
    kernels = [generate(s) for s in seeds]
    text, launches = file_of(kernels)
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".toml").write_text(launches, encoding="utf-8")
    made = changed(miriam.elasticize(path), change)
    asked = check.read_launches(path.with_suffix(".toml"))
    verdicts = check.verify_elasticized(made, asked, seed=seeds[0], seconds=seconds)
    tally = Tally()
    for kernel, verdict in zip(kernels, verdicts, strict=True):
        _count(tally, kernel.seed, verdict, made)
    if not tally.faults:
        path.unlink()
        path.with_suffix(".toml").unlink()
    return tally


def changed(made: Elasticized, change: Callable[[str], str]) -> Elasticized:
    """``made`` with ``change`` made to what was emitted, together and kernel by kernel."""
    kernels = tuple(replace(k, source=change(k.source)) for k in made.kernels)
    return replace(made, source=change(made.source), kernels=kernels)


def kept_seeds() -> list[int]:
    """The seeds of kernels that once showed a fault."""
    lines = SEEDS.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def _count(tally: Tally, seed: int, verdict: check.KernelVerdict, made: Elasticized) -> None:
    if verdict.verdict == "equal":
        tally.equal += 1
        tally.folded += any(f.form.startswith("block") for f in verdict.forms)
    elif verdict.verdict == "refused":
        reason = made.kernel(verdict.name).grid.reason
        tally.refused.setdefault(reason, []).append(seed)
    else:
        wrong = tuple(f.form for f in verdict.forms if not f.equal)
        tally.faults.append(
            Fault(seed, verdict.name, wrong, f"{verdict.verdict}: {verdict.reason}")
        )
