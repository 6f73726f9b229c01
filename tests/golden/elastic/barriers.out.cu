// Elastic forms of the kernels of barriers.in.cu, made by Miriam for sm_87.
#include "miriam_elastic.h"

#include "miriam_block.h"

// What the elastic kernels reach. Define MIRIAM_HAVE_ORIGINALS where the original file comes first.
#ifndef MIRIAM_HAVE_ORIGINALS
#endif

#line 1 "barriers.in.cu"
__device__ void meet(const uint3 blockIdx, const dim3 gridDim, float* tile) {
  miriam_meet();
  tile[threadIdx.x] *= 2.0f;
}
// One logical block of reverse.
__device__ MIRIAM_INLINE void reverse__body(
    const uint3 blockIdx, const dim3 gridDim, float* data, int n)
#line 7 "barriers.in.cu"
{
  extern __shared__ float tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = data[i];
  meet(blockIdx, gridDim, tile);
  miriam_meet();
  data[i] = tile[blockDim.x - 1 - threadIdx.x];
}
#line 1 "miriam"
__global__ void reverse__slice(const MiriamLaunch miriam, float* data, int n) {
  if (blockIdx.x < miriam.count) {
    reverse__body(miriam_block(miriam, miriam.start + blockIdx.x), miriam_grid(miriam), data, n);
  }
}
__global__ void reverse__persistent(const MiriamLaunch miriam, float* data, int n) {
  __shared__ unsigned miriam_done;
  unsigned miriam_all = 0;
  if (miriam_leads()) miriam_done = 0;
  __syncthreads();
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    reverse__body(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), data, n);
    miriam_finish(&miriam_done, miriam_all += miriam_threads());
  }
}
__global__ void reverse__yield(const MiriamLaunch miriam, float* data, int n) {
  __shared__ unsigned miriam_done;
  unsigned miriam_all = 0;
  if (miriam_leads()) miriam_done = 0;
  __syncthreads();
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    reverse__body(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), data, n);
    miriam_finish(&miriam_done, miriam_all += miriam_threads());
  }
}
// One logical block of rows.
__device__ MIRIAM_INLINE void rows__body(
    const uint3 blockIdx, const dim3 gridDim, const float* in, float* out, int count)
#line 18 "barriers.in.cu"
{
  __shared__ float last[4];
  const int row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= count) return;
  const float sum = in[row] + __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 16);
  last[threadIdx.x / 32] = sum;
  out[row] = last[threadIdx.x / 32];
}
#line 1 "miriam"
__global__ void rows__slice(const MiriamLaunch miriam, const float* in, float* out, int count) {
  if (blockIdx.x < miriam.count) {
    rows__body(
        miriam_block(miriam, miriam.start + blockIdx.x), miriam_grid(miriam), in, out, count);
  }
}
__global__ void rows__persistent(const MiriamLaunch miriam, const float* in, float* out, int count) {
  miriam_need_whole_warps();
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    rows__body(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), in, out, count);
    __syncthreads();
  }
}
__global__ void rows__yield(const MiriamLaunch miriam, const float* in, float* out, int count) {
  miriam_need_whole_warps();
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    rows__body(miriam_block(miriam, miriam.start + miriam_at), miriam_grid(miriam), in, out, count);
  }
}
// One logical block of reverse.
template <class MiriamIndex>
__device__ MIRIAM_INLINE void reverse__threads(
    const MiriamIndex& miriam_threads,
    const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim, float* data, int n)
#line 7 "barriers.in.cu"
{
#line 7 "barriers.in.cu"
  MiriamLiving<MiriamIndex> miriam_living(miriam_threads);
  extern __shared__ float tile[];
  miriam_each(miriam_living, [&](const int miriam_n, const uint3 threadIdx) {
#line 9 "barriers.in.cu"
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return miriam_living.end(miriam_n);
  tile[threadIdx.x] = data[i]; }); if (!miriam_living.any()) return;
  
#line 12 "barriers.in.cu"
{
#line 1 "barriers.in.cu"

  __syncthreads();
  miriam_each(miriam_living, [&](const int miriam_n, const uint3 threadIdx) {
#line 3 "barriers.in.cu"
    tile[threadIdx.x] *= 2.0f; });


// Threads past the end leave before the barriers.






#line 12 "barriers.in.cu"
}
#line 12 "barriers.in.cu"

  __syncthreads();
  miriam_each(miriam_living, [&](const int miriam_n, const uint3 threadIdx) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#line 14 "barriers.in.cu"
    data[i] = tile[blockDim.x - 1 - threadIdx.x]; });
}
#line 1 "miriam"
template <int miriam_fold, unsigned miriam_x, unsigned miriam_y, unsigned miriam_z>
__global__ void reverse__block_slice(const MiriamLaunch miriam, float* data, int n) {
  const MiriamFolded<miriam_fold, miriam_x, miriam_y, miriam_z> miriam_threads(miriam, false, false);
  if (blockIdx.x < miriam.count) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + blockIdx.x);
    reverse__threads<decltype(miriam_threads)>(
        miriam_threads, miriam_index, dim3(miriam_x, miriam_y, miriam_z), miriam_grid(miriam),
        data, n);
  }
}
template <int miriam_fold, unsigned miriam_x, unsigned miriam_y, unsigned miriam_z>
__global__ void reverse__block_persistent(const MiriamLaunch miriam, float* data, int n) {
  const MiriamFolded<miriam_fold, miriam_x, miriam_y, miriam_z> miriam_threads(miriam, false, false);
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    reverse__threads<decltype(miriam_threads)>(
        miriam_threads, miriam_index, dim3(miriam_x, miriam_y, miriam_z), miriam_grid(miriam),
        data, n);
    __syncthreads();
  }
}
template <int miriam_fold, unsigned miriam_x, unsigned miriam_y, unsigned miriam_z>
__global__ void reverse__block_yield(const MiriamLaunch miriam, float* data, int n) {
  const MiriamFolded<miriam_fold, miriam_x, miriam_y, miriam_z> miriam_threads(miriam, false, false);
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    reverse__threads<decltype(miriam_threads)>(
        miriam_threads, miriam_index, dim3(miriam_x, miriam_y, miriam_z), miriam_grid(miriam),
        data, n);
  }
}
// One logical thread of rows.
__device__ MIRIAM_INLINE void rows__thread(
    const uint3 threadIdx, const uint3 blockIdx, const dim3 blockDim, const dim3 gridDim,
    const float* in, float* out, int count)
#line 18 "barriers.in.cu"
{
  __shared__ float last[4];
  const int row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= count) return;
  const float sum = in[row] + __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 16);
  last[threadIdx.x / 32] = sum;
  out[row] = last[threadIdx.x / 32];
}
#line 1 "miriam"
template <int miriam_fold>
__global__ void rows__block_slice(
    const MiriamLaunch miriam, const float* in, float* out, int count) {
  const MiriamThreads miriam_threads(miriam, true, true);
  if (blockIdx.x < miriam.count) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + blockIdx.x);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      rows__thread(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam),
          in, out, count);
    }
  }
}
template <int miriam_fold>
__global__ void rows__block_persistent(
    const MiriamLaunch miriam, const float* in, float* out, int count) {
  const MiriamThreads miriam_threads(miriam, true, true);
  for (unsigned miriam_at = blockIdx.x; miriam_at < miriam.count; miriam_at += gridDim.x) {
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      rows__thread(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam),
          in, out, count);
    }
    __syncthreads();
  }
}
template <int miriam_fold>
__global__ void rows__block_yield(
    const MiriamLaunch miriam, const float* in, float* out, int count) {
  const MiriamThreads miriam_threads(miriam, true, true);
  __shared__ unsigned miriam_next[2];
  for (unsigned miriam_turn = 0;; miriam_turn ^= 1) {
    if (miriam_leads()) miriam_next[miriam_turn] = miriam_claim(miriam);
    __syncthreads();
    const unsigned miriam_at = miriam_next[miriam_turn];
    if (miriam_at >= miriam.count) return;
    const uint3 miriam_index = miriam_block(miriam, miriam.start + miriam_at);
    for (unsigned miriam_t = threadIdx.x; miriam_t < miriam_threads.count; miriam_t += blockDim.x) {
      rows__thread(
          miriam_threads.at(miriam_t), miriam_index, miriam_shape(miriam), miriam_grid(miriam),
          in, out, count);
    }
  }
}
