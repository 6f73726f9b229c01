// Elastic forms of the kernels of helpers.in.cu, made by Miriam for sm_87.
#include "miriam_elastic.h"

#include "miriam_block.h"

// What the elastic kernels reach. Define MIRIAM_HAVE_ORIGINALS where the original file comes first.
#ifndef MIRIAM_HAVE_ORIGINALS
namespace grid {
#line 3 "helpers.in.cu"
constexpr int kRows = 4;
#line 5 "helpers.in.cu"
template <class T>
struct Pair {
  T a, b;
};
}
#endif

namespace grid {
#line 10 "helpers.in.cu"
__device__ int column(const uint3 blockIdx, const dim3 gridDim);
#line 11 "helpers.in.cu"
__device__ int row(const uint3 blockIdx, const dim3 gridDim, int step = kRows) { return blockIdx.y * step + column(blockIdx, gridDim); }
#line 12 "helpers.in.cu"
__device__ int column(const uint3 blockIdx, const dim3 gridDim) { return blockIdx.x * blockDim.x + threadIdx.x; }
// One logical block of fill.
template <class T, int N>
__device__ MIRIAM_INLINE void fill__body(
    const uint3 blockIdx, const dim3 gridDim, Pair<T> pair, const Pair<int> &fixed, T* out,
    int miriam_3)
#line 17 "helpers.in.cu"
{
  const auto at = [=](int i) { return row(blockIdx, gridDim, i) + kRows; };
  const auto by = [out, blockIdx, gridDim](int i) -> T& { return out[i + column(blockIdx, gridDim)]; };
  by(at(N)) = pair.a + fixed.b;
}
#line 1 "miriam"
template <class T, int N>
__global__ void __launch_bounds__(128, 2) fill__slice(
    const MiriamLaunch miriam, Pair<T> pair, const __grid_constant__ Pair<int> fixed, T* out,
    int miriam_3 = 3) {
  if (blockIdx.x < miriam.count) {
    fill__body<T, N>(
        miriam_block(miriam, miriam.start + blockIdx.x), miriam_grid(miriam), pair, fixed, out,
        miriam_3);
  }
}
template <class T, int N>
__global__ void __launch_bounds__(128, 2) fill__persistent(
    const MiriamLaunch miriam, Pair<T> pair, const __grid_constant__ Pair<int> fixed, T* out,
    int miriam_3 = 3) {
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    fill__body<T, N>(
        miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), pair, fixed, out,
        miriam_3);
  }
}
template <class T, int N>
__global__ void __launch_bounds__(128, 2) fill__yield(
    const MiriamLaunch miriam, Pair<T> pair, const __grid_constant__ Pair<int> fixed, T* out,
    int miriam_3 = 3) {
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    fill__body<T, N>(
        miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), pair, fixed, out,
        miriam_3);
  }
}
}
namespace grid {
#line 10 "helpers.in.cu"
__device__ int column(const uint3 threadIdx, const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim);
#line 11 "helpers.in.cu"
__device__ int row(const uint3 threadIdx, const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim, int step = kRows) { return blockIdx.y * step + column(threadIdx, blockIdx, blockDim, gridDim); }
#line 12 "helpers.in.cu"
__device__ int column(const uint3 threadIdx, const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim) { return blockIdx.x * blockDim.x + threadIdx.x; }
// One logical thread of fill.
template <class T, int N>
__device__ MIRIAM_INLINE void fill__thread(
    const uint3 threadIdx, const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim,
    Pair<T> pair, const Pair<int> &fixed, T* out, int miriam_3)
#line 17 "helpers.in.cu"
{
  const auto at = [=](int i) { return row(threadIdx, blockIdx, blockDim, gridDim, i) + kRows; };
  const auto by = [out, threadIdx, blockIdx, blockDim, gridDim](int i) -> T& { return out[i + column(threadIdx, blockIdx, blockDim, gridDim)]; };
  by(at(N)) = pair.a + fixed.b;
}
#line 1 "miriam"
template <int miriam_fold, class T, int N>
__global__ void MIRIAM_FOLDED_BOUNDS((128), miriam_fold) fill__block_slice(
    const MiriamLaunch miriam, Pair<T> pair, const __grid_constant__ Pair<int> fixed, T* out,
    int miriam_3 = 3) {
  const MiriamThreads miriam_threads(miriam, false, false);
  if (blockIdx.x < miriam.count) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + blockIdx.x);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      fill__thread<T, N>(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam),
          pair, fixed, out, miriam_3);
    }
  }
}
template <int miriam_fold, class T, int N>
__global__ void MIRIAM_FOLDED_BOUNDS((128), miriam_fold) fill__block_persistent(
    const MiriamLaunch miriam, Pair<T> pair, const __grid_constant__ Pair<int> fixed, T* out,
    int miriam_3 = 3) {
  const MiriamThreads miriam_threads(miriam, false, false);
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      fill__thread<T, N>(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam),
          pair, fixed, out, miriam_3);
    }
  }
}
template <int miriam_fold, class T, int N>
__global__ void MIRIAM_FOLDED_BOUNDS((128), miriam_fold) fill__block_yield(
    const MiriamLaunch miriam, Pair<T> pair, const __grid_constant__ Pair<int> fixed, T* out,
    int miriam_3 = 3) {
  const MiriamThreads miriam_threads(miriam, false, false);
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      fill__thread<T, N>(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam),
          pair, fixed, out, miriam_3);
    }
  }
}
}
