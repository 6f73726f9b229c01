"""The forms of one kernel, compiled alike: what each needs, and whether its bits can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from miriam.compile.compiler import Compiled, Job, compile_many
from miriam.compile.fpmix import FpMix, fp_mix, same_mix
from miriam.errors import MiriamError, UnknownNameError, UsageError
from miriam.kernels import ARCHITECTURES, Dim3, KernelSpec, Resources, Variant, resident_blocks


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a kernel: the name expression ``kernel`` in ``text``.

    ``label`` names the form (``original``, ``persistent``), ``path`` the file that the text
    stands for. ``threads`` and ``dynamic_shared_bytes`` are those of its physical block, for
    the occupancy.
    """

    label: str
    text: str
    path: str
    kernel: str
    threads: int = 256
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FormReport:
    """What a form came to on one architecture, and how it compares with the original.

    ``resident_blocks``: blocks on one empty SM, 0 if not even one fits. ``spills``: more local
    bytes than the original. ``loses_resident_blocks``: fewer than the original.
    ``fp_mix_differs``: another count of some kind of floating-point instruction.
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
    original: Form,
    forms: Sequence[Form],
    arch: str,
    *,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    contract: bool = True,
) -> CompiledForms:
    """Compile ``original`` and its elastic ``forms`` for ``arch`` under one policy for all.

    With contraction, when that leaves each form the original's mix of floating-point
    instructions; else, and with ``contract`` false at once, without. Uncontracted code computes
    what the source says however it was unrolled, so there only a kind of instruction that one
    form has and the other lacks is a reason to refuse. Errors as ``compile_source`` has them.
    """
    if arch not in ARCHITECTURES:
        raise UnknownNameError("architecture", arch, ARCHITECTURES)
    options = (tuple(include_dirs), tuple(defines))
    if contract:
        made = _compile(original, forms, arch, True, options)
        if not any(form.fp_mix_differs for form in made.forms):
            return made
    return _compile(original, forms, arch, False, options)


_Options = tuple[tuple[Path, ...], tuple[str, ...]]


def _compile(
    original: Form, forms: Sequence[Form], arch: str, fmad: bool, options: _Options
) -> CompiledForms:
    (first,) = _reports([original], arch, fmad, options)
    # The elastic header's macro: as many registers as the original's residency leaves.
    include_dirs, defines = options
    resident = f"MIRIAM_RESIDENT_BLOCKS={max(1, first.resident_blocks)}"
    made = _reports(forms, arch, fmad, (include_dirs, (*defines, resident)))
    compared = [_compare(first, other) for other in made]
    spilling = [i for i, report in enumerate(compared) if report.spills]
    again = _reports([forms[i] for i in spilling], arch, fmad, options)
    for i, report in zip(spilling, again, strict=True):
        compared[i] = _compare(first, report)
    refused = next((r for other in compared if (r := _refusal(first, other))), None)
    return CompiledForms(arch, fmad, first, tuple(compared), None if fmad else refused)


def _reports(
    forms: Sequence[Form], arch: str, fmad: bool, options: _Options
) -> Sequence[FormReport]:
    """What each form came to; forms of one text are compiled together."""
    names: dict[tuple[str, str], list[str]] = {}
    for form in forms:
        kernels = names.setdefault((form.text, form.path), [])
        if form.kernel not in kernels:
            kernels.append(form.kernel)
    jobs = [Job(*source, tuple(names[source]), arch, fmad, *options) for source in names]
    made = dict(zip(names, compile_many(jobs), strict=True))
    return [_report(form, made[form.text, form.path], arch) for form in forms]


def _report(form: Form, made: Compiled | MiriamError, arch: str) -> FormReport:
    if isinstance(made, MiriamError):
        raise made
    symbol, resources = made.lowered[form.kernel], made.resources[form.kernel]
    mix = fp_mix(made.cubin, symbol)
    blocks = _resident_blocks(form, resources, arch)
    return FormReport(form.label, symbol, made.cubin, resources, blocks, mix)


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


def _compare(original: FormReport, form: FormReport) -> FormReport:
    return FormReport(
        form.label,
        form.symbol,
        form.cubin,
        form.resources,
        form.resident_blocks,
        form.fp_mix,
        spills=form.resources.local_bytes > original.resources.local_bytes,
        loses_resident_blocks=form.resident_blocks < original.resident_blocks,
        fp_mix_differs=not same_mix(original.fp_mix, form.fp_mix),
    )


def _refusal(original: FormReport, form: FormReport) -> str | None:
    odd = original.fp_mix.kinds ^ form.fp_mix.kinds
    if not odd:
        return None
    return f"{', '.join(sorted(odd))} in only one of {original.label} and {form.label}"
