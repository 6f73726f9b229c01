"""CUDA C++ to cubin, and what the compiled kernels need, read back from it."""

from miriam.compile.cache import Cache, Entry, cache_folder
from miriam.compile.compiler import Compiled, Job, compile_cubin, compile_many, compile_source
from miriam.compile.cubin import read_resources
from miriam.compile.nvrtc import supported_archs

__all__ = [
    "Cache",
    "Compiled",
    "Entry",
    "Job",
    "cache_folder",
    "compile_cubin",
    "compile_many",
    "compile_source",
    "read_resources",
    "supported_archs",
]
