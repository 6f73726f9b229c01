// What the random kernels of one file share.
#include <cuda_runtime.h>

#define ROTATED(x, by) (((x) << (by)) | ((x) >> (32 - (by))))
#define LINEAR(i, n) ((i).x + (n).x * ((i).y + (n).y * (i).z))
#define WHERE const unsigned tid = thread_id(), bid = LINEAR(blockIdx, gridDim)

struct Pair {
  unsigned word;
  float number;
};

struct Params {
  unsigned count;
  float scale;
  int steps[2];
  Pair pair;
  unsigned char flag;
  __device__ unsigned mixed(unsigned x) const { return (x ^ count) + flag; }
};

__constant__ unsigned PRIMES[8] = {2u, 3u, 5u, 7u, 11u, 13u, 17u, 19u};

__device__ inline unsigned threads() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ __forceinline__ unsigned thread_id() { return LINEAR(threadIdx, blockDim); }
__device__ unsigned block_id();
__device__ unsigned global_id() { return block_id() * threads() + thread_id(); }
__device__ unsigned block_id() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

__host__ __device__ inline float bounded(float x) { return x / (1.0f + fabsf(x)); }

template <int N>
__device__ unsigned twisted(unsigned x) {
  return (x << N | x >> (32 - N)) * 2654435761u;
}

template <typename T>
__device__ __forceinline__ T picked(bool first, T x, T y) {
  return first ? x : y;
}

// Reads the grid's indices two calls down.
__device__ unsigned salted(unsigned x, unsigned salt = 3u) {
  for (unsigned i = 0; i < 4u; ++i) {
    if (x % 5u == 0u) return x + block_id() * salt;
    x = twisted<7>(x + i);
  }
  return x ^ global_id();
}

// A barrier in a helper: all write, all read a neighbour's.
__device__ unsigned neighbour(unsigned* tile, unsigned tid, unsigned by, unsigned value) {
  tile[tid] = value;
  __syncthreads();
  return tile[(tid + by) % threads()];
}

namespace tools {
template <typename T>
__device__ T neighbour_of(T* tile, T value, unsigned by = 1u) {
  const unsigned at = thread_id();
  __syncthreads();
  tile[at] = value;
  __syncthreads();
  return tile[(at + by + blockIdx.x) % threads()];
}

__device__ unsigned first_of(unsigned x) { return salted(x, gridDim.x) % 17u; }
}  // namespace tools
