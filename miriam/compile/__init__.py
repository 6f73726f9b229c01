"""CUDA C++ to cubin, and what the compiled kernels need, read back from it."""

from miriam.compile.cubin import read_resources
from miriam.compile.nvrtc import Compiled, compile_cubin, supported_archs

__all__ = ["Compiled", "compile_cubin", "read_resources", "supported_archs"]
