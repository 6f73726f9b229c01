"""Forms of a kernel side by side: the mix of their instructions, what they need, the policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from miriam import elasticize
from miriam.compile import (
    CompiledForms,
    Form,
    FormSet,
    FpMix,
    compile_forms,
    compile_source,
    fp_mixes,
    fpmix,
    same_mix,
)
from miriam.errors import MiriamError, MissingCapabilityError, SourceError, UnknownNameError
from miriam.kernels import Dim3

ARITHMETIC = """\
#include <cuda_fp16.h>
extern "C" __global__ void single(float* x) { x[0] = x[1] * x[2] + x[3]; }
extern "C" __global__ void twice(double* x) { x[0] = x[1] * x[2] + x[3]; }
extern "C" __global__ void packed(__half2* x) { x[0] = x[1] * x[2] + x[3]; }
extern "C" __global__ void moves(__half2* x, float* y) {
  x[0] = __float2half2_rn(1.0f); y[0] = -y[1]; y[2] = fabsf(y[3]); y[4] = fmaf(y[5], y[6], 0.0f);
}
__device__ __noinline__ float helper(float a, float b, float c) { return a * b + c; }
extern "C" __global__ void calls(float* x) { x[0] = helper(x[1], x[2], x[3]); }
"""
NAMES = ("single", "twice", "packed", "moves", "calls")
HEAD = 'extern "C" __global__ void k(float* x) {\n'
ORIGINAL = HEAD + "  x[threadIdx.x] = x[threadIdx.x] * x[1] + x[2];\n}\n"
LOOP = HEAD + "  for (int i = 0; i < 2; ++i) x[i] = x[i + 2] * x[4] + x[5];\n}\n"
APART = HEAD + "  x[0] = __fmul_rn(x[threadIdx.x], x[1]) + x[2];\n}\n"
OTHER = HEAD + "  x[0] = x[1] * x[2];\n}\n"
LARGE = (
    HEAD + "  __shared__ float t[9999]; t[threadIdx.x] = x[0]; __syncthreads(); x[0] = t[9];\n}\n"
)
SPILLS = HEAD + "  float t[99]; for (int i = 0; i < 99; ++i) t[i] = x[i]; x[0] = t[int(x[0])];\n}\n"


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIRIAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def form(text: str, label: str = "persistent", threads: int = 256) -> Form:
    return Form(label, text, f"{label}.cu", "k", threads)


def compiled(
    original: Form, forms: Sequence[Form], arch: str, contract: bool = True
) -> CompiledForms:
    (made,) = compile_forms([FormSet(original, tuple(forms))], arch, contract=contract)
    if isinstance(made, MiriamError):
        raise made
    return made


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_110"])
def test_contraction_turns_two_instructions_into_one(arch: str) -> None:
    mixes = {}
    for fmad in (True, False):
        cubin = compile_source(ARITHMETIC, "a.cu", NAMES, arch, fmad=fmad).cubin
        found = fp_mixes([(cubin, name) for name in NAMES], arch)
        mixes[fmad] = dict(zip(NAMES, found, strict=True))
    assert mixes[True]["single"] == mixes[True]["calls"] == FpMix(ffma=1)
    assert mixes[False]["single"] == mixes[False]["calls"] == FpMix(fmul=1, fadd=1)
    assert mixes[True]["twice"] == FpMix(dfma=1)
    assert mixes[False]["twice"] == FpMix(dmul=1, dadd=1)
    assert mixes[True]["packed"] == FpMix(hfma2=1)
    assert mixes[False]["packed"] == FpMix(hmul2=1, hadd2=1)
    assert mixes[True]["moves"] == mixes[False]["moves"] == FpMix(fmul=1)


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("FFMA.FTZ.RZ", "R1,R2.reuse,R3,R4", FpMix(ffma=1)),
        ("FFMA2", "R2,R4.F32x2,R6,R8", FpMix(ffma=2)),
        ("UFADD", "UR1,UR2,UR3", FpMix(fadd=1)),
        ("HFMA2.MMA.BF16_V2", "R1,R2,1,1,R3", FpMix(hadd2=1)),
        ("HFMA2.MMA", "R1,-RZ,RZ,1.875,0.1", FpMix()),
        ("HADD2.F32", "R1,-RZ,R0.H0_H0", FpMix()),
        ("FFMA", "R1,R2,1.5,-URZ", FpMix(fmul=1)),
        ("FADD32I", "R1,R2,1", FpMix(fadd=1)),
        ("FMNMX", "R1,R2,R3,PT", FpMix()),
        ("HMMA.16816.F32", "R1,R2,R3,R4", FpMix()),
    ],
)
def test_instructions_by_kind(opcode: str, operands: str, expected: FpMix) -> None:
    assert fpmix._count([fpmix._Instruction(opcode, operands)]) == expected


def test_mixes_are_the_same_or_not() -> None:
    assert same_mix(FpMix(ffma=2), FpMix(ffma=2))
    assert not same_mix(FpMix(ffma=2), FpMix(ffma=1, fmul=1, fadd=1))
    assert same_mix(FpMix(ffma=2, fadd=1), FpMix(ffma=6, fadd=3), fold=4)
    assert not same_mix(FpMix(ffma=2, fadd=1), FpMix(ffma=6, fadd=3), fold=2)
    assert not same_mix(FpMix(ffma=2, fadd=1), FpMix(ffma=4, fadd=3), fold=4)
    assert FpMix(ffma=2, dadd=1).kinds == {"ffma", "dadd"}


FOLDED = """\
__global__ void __launch_bounds__(64) k(float* x) {
  __shared__ float t[64];
  t[threadIdx.x] = x[threadIdx.x] * x[64] + x[65];
  __syncthreads();
  x[threadIdx.x] = t[63 - threadIdx.x] * x[66] + x[67];
}
"""


@pytest.mark.parametrize("fold", [2, 4])
def test_a_folded_form_contracts_as_the_original_once_per_logical_thread(fold: int) -> None:
    kernel = elasticize(FOLDED).kernel("k")
    entry = kernel.entry("yield", None, fold, Dim3(64))
    original = Form("original", kernel.original, "k.cu", "k", 64)
    folded = Form("block", kernel.source, "k.cu", entry, 64 // fold, fold=fold)
    made = compiled(original, [folded], "sm_87")
    assert made.fmad and made.original.fp_mix == FpMix(ffma=2)
    assert made.forms[0].fp_mix == FpMix(ffma=2 * fold)
    assert not made.forms[0].fp_mix_differs


def test_an_unknown_symbol_lists_the_known() -> None:
    cubin = compile_source(ARITHMETIC, "a.cu", NAMES, "sm_90").cubin
    with pytest.raises(UnknownNameError, match="kernel in the cubin: unknown name, got 'sngle'"):
        fp_mixes([(cubin, "sngle")], "sm_90")


def test_a_broken_cubin_is_an_error_of_ours() -> None:
    with pytest.raises(MiriamError, match="cubin: it is no ELF file"):
        fp_mixes([(b"no cubin", "k")], "sm_90")


def test_without_nvdisasm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda import pathfinder

    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda _: None)
    fpmix._nvdisasm.cache_clear()
    with pytest.raises(MissingCapabilityError, match=r"nvdisasm.*pip install miriam-gpu\[cuda\]"):
        fp_mixes([(b"", "k")], "sm_90")
    fpmix._nvdisasm.cache_clear()


@pytest.mark.parametrize("arch", ["sm_75", "sm_87", "sm_90", "sm_110"])
def test_dividing_integers_is_no_arithmetic_with_floats(arch: str) -> None:
    """Where both operands are known to fit in 16 bits the compiler divides with FMUL."""
    divides = "unsigned short* y = (unsigned short*)x; long long* z = (long long*)x;"
    text = HEAD + f"  {divides} y[0] = y[1] / y[2]; y[3] = y[4] % y[5]; z[9] = z[8] % z[7];\n}}\n"
    plain = HEAD + "  x[0] = x[1];\n}\n"
    multiplies = text.replace("z[9] =", "x[8] = x[9] / x[10]; z[9] =")
    assert compiled(form(text, "original"), [form(plain)], arch, contract=False).refused is None
    made = compiled(form(multiplies, "original"), [form(plain)], arch, contract=False)
    assert made.refused and "ffma" in made.refused


def test_a_grid_that_divides_is_contracted() -> None:
    """The original's blockIdx.y fits in 16 bits, a logical block's is not known to."""
    text = """\
__global__ void tiles(int* x, int n) {
  const int row = blockIdx.y % gridDim.z, column = threadIdx.x / (blockIdx.z + 1);
  x[blockIdx.x * n + threadIdx.x] = row + column;
}
"""
    (kernel,) = elasticize(text, arch="sm_110").kernels
    forms = (Form(f, kernel.source, "t.cu", kernel.entry(f)) for f in kernel.entries)
    sets = [FormSet(Form("original", kernel.original, "t.cu", "tiles"), tuple(forms))]
    (made,) = compile_forms(sets, "sm_110")
    assert isinstance(made, CompiledForms)
    assert made.fmad
    assert made.refused is None


def test_many_kernels_take_one_disassembly_and_then_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    disassemble = fpmix._disassemble

    def spy(tool: Path, arch: str, codes: Sequence[bytes]) -> list[bytes]:
        made.append(len(codes))
        return disassemble(tool, arch, codes)

    monkeypatch.setattr(fpmix, "_disassemble", spy)
    texts = [HEAD + f"  x[0] = x[1] * {n}.5f + x[2];\n}}\n" for n in range(3)]
    sets = [FormSet(form(text, "original"), (form(text + "\n"),)) for text in texts]
    first = compile_forms(sets, "sm_87")
    # The original's code and the form's are the same bytes.
    assert made == [3]
    assert compile_forms(sets, "sm_87") == first
    assert made == [3]


def test_a_kernel_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = FormSet(form(HEAD + "oops; }", "original"), ())
    good = FormSet(form(ORIGINAL, "original"), (form(ORIGINAL),))
    error, made = compile_forms([broken, good], "sm_90")
    assert isinstance(error, SourceError)
    assert isinstance(made, CompiledForms)
    assert made.original.fp_mix == FpMix(ffma=1)


def test_equal_mixes_are_contracted() -> None:
    made = compiled(form(ORIGINAL, "original"), [form(ORIGINAL)], "sm_90")
    assert made.fmad
    assert made.refused is None
    assert made.original.fp_mix == made.forms[0].fp_mix == FpMix(ffma=1)
    assert made.forms[0].resources == made.original.resources
    assert made.forms[0].cubin[:4] == b"\x7fELF"


def test_one_form_that_contracts_less_decides_for_all() -> None:
    forms = [form(ORIGINAL, "slice"), form(APART)]
    made = compiled(form(ORIGINAL, "original"), forms, "sm_90")
    assert not made.fmad
    assert made.refused is None
    assert {f.fp_mix for f in (made.original, *made.forms)} == {FpMix(fmul=1, fadd=1)}
    assert not any(f.fp_mix_differs for f in made.forms)


def test_an_unrolled_loop_is_trusted_without_contraction() -> None:
    made = compiled(form(ORIGINAL, "original"), [form(LOOP)], "sm_90")
    assert not made.fmad
    assert made.refused is None
    assert made.forms[0].fp_mix_differs


def test_another_kind_of_instruction_is_refused() -> None:
    made = compiled(form(ORIGINAL, "original"), [form(OTHER)], "sm_90")
    assert made.refused == "fadd in only one of original and persistent"


def test_contraction_can_be_left_out() -> None:
    forms = [form(ORIGINAL)]
    made = compiled(form(ORIGINAL, "original"), forms, "sm_90", contract=False)
    assert not made.fmad
    assert made.original.fp_mix == FpMix(fmul=1, fadd=1)


def test_spills_and_lost_blocks_are_flagged() -> None:
    forms = [form(LARGE, "large"), form(SPILLS, "spills"), form(ORIGINAL, "folded", threads=128)]
    made = compiled(form(ORIGINAL, "original"), forms, "sm_90", contract=False)
    large, spills, folded = made.forms
    assert made.original.resident_blocks == 8
    assert (large.resident_blocks, large.loses_resident_blocks, large.spills) == (5, True, False)
    assert (spills.loses_resident_blocks, spills.spills) == (False, True)
    assert (folded.resident_blocks, folded.loses_resident_blocks) == (16, False)


def test_a_block_that_does_not_fit_has_no_residents() -> None:
    wide = form(ORIGINAL, "wide", threads=2048)
    (made,) = compiled(form(ORIGINAL, "original"), [wide], "sm_90").forms
    assert (made.resident_blocks, made.loses_resident_blocks) == (0, True)


def test_options_reach_every_form(tmp_path: Path) -> None:
    (tmp_path / "value.cuh").write_text("#define VALUE LEFT\n")
    text = '#include "value.cuh"\n' + HEAD + "x[0] = x[1] * VALUE; }"
    (made,) = compile_forms(
        [FormSet(form(text, "original"), (form(text),))],
        "sm_90",
        include_dirs=[tmp_path],
        defines=["LEFT=3"],
    )
    assert isinstance(made, CompiledForms)
    assert made.original.fp_mix == FpMix(fmul=1)


def test_a_wrong_form_is_a_source_error() -> None:
    with pytest.raises(SourceError, match=r"persistent.cu:2"):
        compiled(form(ORIGINAL, "original"), [form(HEAD + "oops; }")], "sm_90")


def test_an_arch_without_limits_is_unknown() -> None:
    with pytest.raises(UnknownNameError, match="architecture"):
        compiled(form(ORIGINAL, "original"), [form(ORIGINAL)], "sm_52")
