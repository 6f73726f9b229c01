"""CUDA C++ to cubin, and what the compiled kernels need, read back from it."""

from miriam.compile.cache import Cache, Entry, cache_folder
from miriam.compile.compiler import (
    Compiled,
    Job,
    compile_cubin,
    compile_many,
    compile_source,
    read_source,
)
from miriam.compile.cubin import read_resources
from miriam.compile.forms import CompiledForms, Form, FormReport, FormSet, compile_forms
from miriam.compile.fpmix import FpMix, fp_mixes, same_mix
from miriam.compile.nvrtc import supported_archs

__all__ = [
    "Cache",
    "Compiled",
    "CompiledForms",
    "Entry",
    "Form",
    "FormReport",
    "FormSet",
    "FpMix",
    "Job",
    "cache_folder",
    "compile_cubin",
    "compile_forms",
    "compile_many",
    "compile_source",
    "fp_mixes",
    "read_resources",
    "read_source",
    "same_mix",
    "supported_archs",
]
