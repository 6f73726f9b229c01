"""Names that CUDA and C++ bring along, by what they mean for an elastic kernel."""

from __future__ import annotations

import re

BARRIERS = frozenset({"__syncthreads", "__barrier_sync", "__barrier_sync_count"})
VOTING_BARRIERS = frozenset({"__syncthreads_and", "__syncthreads_or", "__syncthreads_count"})
# Methods and functions of cooperative_groups that may wait for the whole block.
GROUP_BARRIERS = frozenset({"sync", "barrier_wait", "arrive_and_wait", "wait", "wait_prior"})
ACTIVE = frozenset({"__activemask", "coalesced_threads"})
_COLLECTIVE = re.compile(
    r"__(shfl|match|reduce)\w*_sync|__(ballot|any|all)_sync|__syncwarp|__shfl\w*|"
    r"__(ballot|any|all)|\w+_matrix_sync|mma_sync|bmma_sync"
)
_GROUP_COLLECTIVE = re.compile(
    r"shfl\w*|any|all|ballot|match_\w+|reduce|(in|ex)clusive_scan|labeled_partition|"
    r"binary_partition|invoke_one\w*"
)
MASKED = re.compile(r"__(shfl|match|reduce)\w*_sync|__(ballot|any|all)_sync|__syncwarp")
WARP_RESULTS = re.compile(r"__(ballot|any|all|reduce_\w+|match_all)_sync")
# Each thread gets its own, whatever it passes.
OWN_RESULTS = re.compile(
    r"\w*clock\w*|\w*timer\w*|malloc|__activemask|__match_\w+|__\w*(lane|smid|warpid)\w*|"
    r"__nvvm_read_\w+"
)
ATOMIC = re.compile(r"atomic\w+|__atomic\w+|__iAtomic\w+|fetch_(add|sub|and|or|xor|max|min)")

_MATH = (
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0 "
    "cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma "
    "fmax fmin fmod frexp hypot ilogb isfinite isinf isnan j0 j1 jn ldexp lgamma llrint llround "
    "log log10 log1p log2 logb lrint lround max min modf nan nearbyint nextafter norm norm3d "
    "norm4d normcdf normcdfinv pow powi rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d "
    "round rsqrt saturate scalbln scalbn signbit sin sincos sincospi sinh sinpi sqrt tan tanh "
    "tanpi tgamma trunc y0 y1 yn labs llabs umin umax ullmin ullmax llmin llmax mul24 umul24"
)
_OTHERS = (
    "printf assert memcpy memset malloc free clock clock64 static_cast reinterpret_cast const_cast "
    "dynamic_cast sizeof alignof decltype declval make_pair make_tuple tie get swap move forward "
    "int unsigned long short char bool float double void size_t dim3 half half2 __half this_thread "
    "this_thread_block tiled_partition thread_rank operator conditional enable_if numeric_limits"
)
PURE = frozenset((*_MATH.split(), *(f"{n}f" for n in _MATH.split()), *_OTHERS.split()))
_PURE = re.compile(
    r"__\w+|make_\w+|(char|uchar|short|ushort|int|uint|long|ulong|longlong|ulonglong|float|double)"
    r"[1-4]?|u?int(8|16|32|64|ptr)_t|plus|less|greater|tex\w*|surf\w*|h2?(exp|log|sin|cos|sqrt|rsqrt|rcp|ceil|floor|rint|"
    r"trunc|abs|max|min|tanh)\w*|curand\w*|cuC\w+|bfloat\w*|nv_bfloat\w*|(is|bit)_\w+"
)
# Methods of cooperative groups, vectors of bits and the like that neither wait nor move data.
UNIFORM_METHODS = frozenset(
    {"size", "num_threads", "meta_group_size", "group_dim", "dim_threads", "dim_blocks"}
)

GROUP_METHODS = UNIFORM_METHODS | {
    "thread_rank",
    "meta_group_rank",
    "thread_index",
    "get",
    "operator",
    "x",
    "y",
    "z",
}

# Headers of the toolkit, the compilers and the system: not finding them loses no device code.
_KNOWN_HEADER = re.compile(
    r"(cuda|cu[A-Z]|cublas|cudnn|cufft|curand|cusparse|cusolver|nccl|nvml|nvtx|nvToolsExt|device_|"
    r"driver_|vector_|channel_|texture_|surface_|math_|sm_\d|helper_cuda_|crt/|cub/|thrust/|"
    r"cooperative_groups|mma\.h|nv/|omp\.h|mpi\.h|sys/|bits/|(arpa|netinet)/|c(std\w+|math|assert|"
    r"float|limits|time|errno|ctype|string|inttypes|fenv|complex|signal|locale|wchar|uchar|"
    r"setjmp)$|(assert|complex|ctype|dirent|glob|dlfcn|errno|fcntl|fenv|float|getopt|inttypes|iso646|"
    r"libgen|limits|locale|malloc|math|memory|omp|pthread|sched|semaphore|setjmp|signal|stdarg|"
    r"stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|tgmath|time|unistd|values|wchar|"
    r"builtin_types|host_defines|windows|direct|io|vector_types|vector_functions)\.h$|[a-z_0-9]+$)"
)


_HOST_HEADER = re.compile(
    r"iostream|[fs]stream|iomanip|string|vector|map|set|list|deque|queue|stack|iterator|"
    r"unordered_\w+|chrono|thread|mutex|random|memory|algorithm|numeric|regex|functional|future|"
    r"exception|stdexcept|c?std(io|lib)(\.h)?|cstring|string\.h|c?time(\.h)?|"
    r"(unistd|getopt|omp|mpi|errno|fcntl|malloc|glob|dirent|signal|(sys|arpa|netinet)/\w+)\.h"
)


def is_host_header(name: str) -> bool:
    """Whether a header has nothing for device code unless that names ``std``."""
    return bool(_HOST_HEADER.fullmatch(name))


def is_collective(name: str, member: bool) -> bool:
    """Whether the function or method exchanges values among the threads of a warp."""
    return bool((_GROUP_COLLECTIVE if member else _COLLECTIVE).fullmatch(name))


def is_pure(name: str) -> bool:
    """Whether the function is known to neither wait nor read an index."""
    return name in PURE or bool(_PURE.fullmatch(name))


def is_group_object(name: str) -> bool:
    """Whether the call makes a cooperative group, which differs from thread to thread."""
    return name in ("this_thread_block", "tiled_partition", "thread_rank")


def is_known_header(name: str) -> bool:
    """Whether an include belongs to the toolkit, the compiler or the system."""
    return bool(_KNOWN_HEADER.match(name))
