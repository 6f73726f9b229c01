// Elastic forms of the kernels of saxpy.in.cu, made by Miriam for sm_87.
#include "miriam_elastic.h"

#include "miriam_block.h"

// What the elastic kernels reach. Define MIRIAM_HAVE_ORIGINALS where the original file comes first.
#ifndef MIRIAM_HAVE_ORIGINALS
#endif

// One logical block of saxpy.
__device__ MIRIAM_INLINE void saxpy__body(
    const uint3 blockIdx, const dim3 gridDim, int n, float a, const float* __restrict__ x,
    float* y)
#line 2 "saxpy.in.cu"
{
  // one thread per element
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
#line 1 "miriam"
extern "C" __global__ void saxpy__slice(
    const MiriamLaunch miriam, int n, float a, const float* __restrict__ x, float* y) {
  if (blockIdx.x < miriam.count) {
    saxpy__body(miriam_block(miriam, miriam.start + blockIdx.x), miriam_grid(miriam), n, a, x, y);
  }
}
extern "C" __global__ void saxpy__persistent(
    const MiriamLaunch miriam, int n, float a, const float* __restrict__ x, float* y) {
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    saxpy__body(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), n, a, x, y);
  }
}
extern "C" __global__ void saxpy__yield(
    const MiriamLaunch miriam, int n, float a, const float* __restrict__ x, float* y) {
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    saxpy__body(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), n, a, x, y);
  }
}
// One logical thread of saxpy.
__device__ MIRIAM_INLINE void saxpy__thread(
    const uint3 threadIdx, const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim, int n,
    float a, const float* __restrict__ x, float* y)
#line 2 "saxpy.in.cu"
{
  // one thread per element
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
#line 1 "miriam"
template <int miriam_fold>
__global__ void saxpy__block_slice(
    const MiriamLaunch miriam, int n, float a, const float* __restrict__ x, float* y) {
  const MiriamThreads miriam_threads(miriam, false, false);
  if (blockIdx.x < miriam.count) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + blockIdx.x);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      saxpy__thread(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam), n,
          a, x, y);
    }
  }
}
template <int miriam_fold>
__global__ void saxpy__block_persistent(
    const MiriamLaunch miriam, int n, float a, const float* __restrict__ x, float* y) {
  const MiriamThreads miriam_threads(miriam, false, false);
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      saxpy__thread(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam), n,
          a, x, y);
    }
  }
}
template <int miriam_fold>
__global__ void saxpy__block_yield(
    const MiriamLaunch miriam, int n, float a, const float* __restrict__ x, float* y) {
  const MiriamThreads miriam_threads(miriam, false, false);
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      saxpy__thread(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam), n,
          a, x, y);
    }
  }
}
