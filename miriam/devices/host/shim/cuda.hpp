// The part of CUDA C++ that kernels may use on the host. Included before the user's first line.
#pragma once

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "abi.hpp"

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __MIRIAM_HOST__ 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
// A block stays on one OS thread from start to end, so that thread-local means per block.
#define __shared__ static __thread
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

// Constant while a kernel thread runs: the runtime writes them before it starts or resumes one.
#define MIRIAM_HOST_TLS(name) \
  asm("miriam_host_" name) __attribute__((tls_model("initial-exec"), visibility("default")))
extern const __thread uint3 threadIdx MIRIAM_HOST_TLS("thread");
extern const __thread uint3 blockIdx MIRIAM_HOST_TLS("block");
extern const __constinit thread_local dim3 blockDim MIRIAM_HOST_TLS("block_dim");
extern const __constinit thread_local dim3 gridDim MIRIAM_HOST_TLS("grid_dim");
constexpr int warpSize = 32;

#include "vectors.hpp"

#include "atomics.hpp"
#include "numbers.hpp"
#include "sync.hpp"

#include "entry.hpp"
