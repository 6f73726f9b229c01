"""The forms of a kernel, compiled alike: what each needs, and whether its bits can be trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from miriam.compile.compiler import compile_source
from miriam.compile.fpmix import FpMix, fp_mixes, same_mix
from miriam.compile.nvrtc import supported_archs
from miriam.errors import MiriamError, UnknownNameError, UsageError
from miriam.kernels import ARCHITECTURES, Dim3, KernelSpec, Resources, Variant, resident_blocks


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a kernel: the name expression ``kernel`` in ``text``.

    ``label`` names the form (``original``, ``persistent``), ``path`` the file that the text
    stands for. ``threads`` and ``dynamic_shared_bytes`` are those of its physical block, for
    the occupancy; ``fold`` logical threads run on each of these.
    """

    label: str
    text: str
    path: str
    kernel: str
    threads: int = 256
    dynamic_shared_bytes: int = 0
    fold: int = 1


@dataclass(frozen=True, slots=True)
class FormSet:
    """The original form of a kernel and its elastic ones."""

    original: Form
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class FormReport:
    """What a form came to on one architecture, and how it compares with the original.

    ``resident_blocks``: blocks on one empty SM, 0 if not even one fits. ``spills``: more local
    bytes than the original. ``loses_resident_blocks``: fewer than the original.
    ``fp_mix_differs``: another count of some kind of floating-point instruction (``same_mix``).
    """

    label: str
    symbol: str
    cubin: bytes
    resources: Resources
    resident_blocks: int
    fp_mix: FpMix
    spills: bool = False
    loses_resident_blocks: bool = False
    fp_mix_differs: bool = False


@dataclass(frozen=True, slots=True)
class CompiledForms:
    """The original and its elastic forms under one compile policy.

    ``fmad``: whether a*b+c may be contracted, in all of them. ``refused``: why their bits can
    not be trusted to be equal, or None.
    """

    arch: str
    fmad: bool
    original: FormReport
    forms: tuple[FormReport, ...]
    refused: str | None = None


def compile_forms(
    sets: Sequence[FormSet],
    arch: str,
    *,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    contract: bool = True,
) -> tuple[CompiledForms | MiriamError, ...]:
    """Compile each kernel of ``sets`` for ``arch``, under one policy for all of its forms.

    With contraction, when that leaves each form the original's mix of floating-point
    instructions; else, and with ``contract`` false at once, without. Uncontracted code computes
    what the source says however it was unrolled, so there only a kind of instruction that one
    form has and the other lacks is a reason to refuse. Many kernels in one call share the cost
    of the disassembler. A kernel that fails has its error for a result; UnknownNameError for the
    architecture, MissingCapabilityError without the ``cuda`` extra.
    """
    if arch not in ARCHITECTURES:
        raise UnknownNameError("architecture", arch, ARCHITECTURES)
    supported_archs()
    policy = _Policy(arch, contract, tuple(include_dirs), tuple(defines))
    made = _compile(sets, policy)
    apart = [i for i, found in enumerate(made) if contract and _contracts_apart(found)]
    again = _compile([sets[i] for i in apart], replace(policy, fmad=False))
    for i, found in zip(apart, again, strict=True):
        made[i] = found
    return tuple(made)


def _contracts_apart(made: CompiledForms | MiriamError) -> bool:
    return isinstance(made, CompiledForms) and any(f.fp_mix_differs for f in made.forms)


@dataclass(frozen=True, slots=True)
class _Policy:
    arch: str
    fmad: bool
    include_dirs: tuple[Path, ...]
    defines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Built:
    """A form in a cubin."""

    form: Form
    symbol: str
    cubin: bytes
    resources: Resources
    resident_blocks: int


def _compile(sets: Sequence[FormSet], policy: _Policy) -> list[CompiledForms | MiriamError]:
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        families = list(pool.map(lambda s: _family(s, policy), sets))
    wanted = [
        (b.cubin, b.symbol) for family in families if isinstance(family, tuple) for b in family
    ]
    mixes = iter(fp_mixes(wanted, policy.arch))
    return [
        family if isinstance(family, MiriamError) else _report(family, mixes, policy)
        for family in families
    ]


def _family(forms: FormSet, policy: _Policy) -> tuple[_Built, ...] | MiriamError:
    """The original and then each form, or the first error."""
    try:
        (original,) = _built([forms.original], policy)
        # The elastic header's macro: as many registers as the original's residency leaves.
        resident = f"MIRIAM_RESIDENT_BLOCKS={max(1, original.resident_blocks)}"
        made = _built(forms.forms, replace(policy, defines=(*policy.defines, resident)))
        spilling = [i for i, other in enumerate(made) if _spills(original, other)]
        again = _built([forms.forms[i] for i in spilling], policy)
    except MiriamError as error:
        return error
    for i, other in zip(spilling, again, strict=True):
        made[i] = other
    return (original, *made)


def _built(forms: Sequence[Form], policy: _Policy) -> list[_Built]:
    """Each form compiled; forms of one text together."""
    names: dict[tuple[str, str], list[str]] = {}
    for form in forms:
        kernels = names.setdefault((form.text, form.path), [])
        if form.kernel not in kernels:
            kernels.append(form.kernel)
    made = {
        source: compile_source(
            *source,
            kernels,
            policy.arch,
            fmad=policy.fmad,
            include_dirs=policy.include_dirs,
            defines=policy.defines,
        )
        for source, kernels in names.items()
    }
    built = []
    for form in forms:
        found = made[form.text, form.path]
        resources = found.resources[form.kernel]
        blocks = _resident_blocks(form, resources, policy.arch)
        built.append(_Built(form, found.lowered[form.kernel], found.cubin, resources, blocks))
    return built


def _resident_blocks(form: Form, resources: Resources, arch: str) -> int:
    variant = Variant(form.threads, resources)
    block = Dim3(form.threads)
    kernel = KernelSpec(
        form.kernel, form.path, Dim3(1), block, (variant,), form.dynamic_shared_bytes
    )
    try:
        return resident_blocks(kernel, variant, ARCHITECTURES[arch])
    except UsageError:
        return 0


def _spills(original: _Built, form: _Built) -> bool:
    return form.resources.local_bytes > original.resources.local_bytes


def _report(family: Sequence[_Built], mixes: Iterator[FpMix], policy: _Policy) -> CompiledForms:
    first, *forms = family
    mix = next(mixes)
    original = _compared(first, first, mix, mix)
    compared = tuple(_compared(first, form, mix, next(mixes)) for form in forms)
    refused = next((r for form in compared if (r := _refusal(original, form))), None)
    return CompiledForms(
        policy.arch, policy.fmad, original, compared, None if policy.fmad else refused
    )


def _compared(original: _Built, form: _Built, wanted: FpMix, mix: FpMix) -> FormReport:
    return FormReport(
        form.form.label,
        form.symbol,
        form.cubin,
        form.resources,
        form.resident_blocks,
        mix,
        spills=_spills(original, form),
        loses_resident_blocks=form.resident_blocks < original.resident_blocks,
        fp_mix_differs=not same_mix(wanted, mix, form.form.fold),
    )


def _refusal(original: FormReport, form: FormReport) -> str | None:
    odd = original.fp_mix.kinds ^ form.fp_mix.kinds
    if not odd:
        return None
    return f"{', '.join(sorted(odd))} in only one of {original.label} and {form.label}"
