// One kernel per feature of CUDA C++ that the host has to get right.
#include <cuda_runtime.h>

#include "features.cuh"

__global__ void shuffles(const int* in, int* out) {
  const int t = threadIdx.x, v = in[t];
  out[0 * 64 + t] = __shfl_sync(0xffffffffu, v, 5);
  out[1 * 64 + t] = __shfl_up_sync(0xffffffffu, v, 3);
  out[2 * 64 + t] = __shfl_down_sync(0xffffffffu, v, 4, 16);
  out[3 * 64 + t] = __shfl_xor_sync(0xffffffffu, v, 1);
  out[4 * 64 + t] = __ballot_sync(0xffffffffu, v % 3 == 0);
  out[5 * 64 + t] = __any_sync(0xffffffffu, v == 40) + 2 * __all_sync(0xffffffffu, v < 64);
  if (t % 32 < 8) out[6 * 64 + t] = __shfl_sync(0xffu, v, 7);
  if (t % 2) out[7 * 64 + t] = __activemask();
  __syncwarp();
}

__global__ void warp_reduce(const double* in, double* out) {
  double v = in[blockIdx.x * 32 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}

__global__ void dynamic_reverse(const float* in, float* out) {
  extern __shared__ __align__(16)
      float line[];
  line[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = line[blockDim.x - 1 - threadIdx.x];
}

__global__ void histogram(const int* in, int* counts, float* total, unsigned* largest,
                          unsigned long long* tickets) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&counts[in[i]], 1);
  atomicAdd(total, 0.5f);
  atomicMax(largest, static_cast<unsigned>(i));
  atomicAdd(tickets, 1ull);
  for (;;) {
    const int seen = counts[8];
    if (atomicCAS(&counts[8], seen, seen + 2) == seen) break;
  }
}

template <int N, bool kDouble>
__global__ void repeat(const float* in, float* out) {
  for (int i = 0; i < N; ++i) out[threadIdx.x * N + i] = twice<kDouble>(in[threadIdx.x]);
}

// Threads that have exited are not waited for.
__global__ void early_return(const float* in, float* out, int n) {
  __shared__ float line[64];
  if (threadIdx.x >= n) return;
  line[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = line[n - 1 - threadIdx.x];
}

__global__ void votes(const int* in, int* out) {
  const int v = in[threadIdx.x];
  out[threadIdx.x] = __syncthreads_count(v > 2);
  out[blockDim.x + threadIdx.x] = __syncthreads_and(v >= 0) + 2 * __syncthreads_or(v > 100);
}

__global__ void prefix_sum(const int* in, int* out) {
  __shared__ int line[2][128];
  int side = 0;
  line[0][threadIdx.x] = in[threadIdx.x];
  for (unsigned offset = 1; offset < blockDim.x; offset *= 2, side ^= 1) {
    __syncthreads();
    int v = line[side][threadIdx.x];
    if (threadIdx.x >= offset) v += line[side][threadIdx.x - offset];
    line[side ^ 1][threadIdx.x] = v;
  }
  out[threadIdx.x] = line[side][threadIdx.x];
}

__global__ void indices(int* out) {
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const dim3 extent = blockDim;
  out[block * (extent.x * extent.y * extent.z) + thread] = block * 1000 + thread;
}

__global__ void uninitialised(unsigned* out) {
  __shared__ unsigned fixed[4];
  extern __shared__ unsigned sized[];
  out[blockIdx.x * 2] = fixed[3];
  out[blockIdx.x * 2 + 1] = sized[1];
  fixed[3] = sized[1] = 7;
}

// Without the barrier between its two halves a thread may see any neighbour's old value.
__global__ void missing_barrier(int* out) {
  __shared__ int line[64];
  line[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = line[(threadIdx.x + 1) % 64];
}

__global__ void numbers(const float* in, float* out) {
  const float4 v = *reinterpret_cast<const float4*>(in);
  out[0] = fmaf(v.x, v.y, v.z);
  out[1] = rsqrtf(v.w);
  out[2] = __fdividef(v.x, v.y);
  out[3] = __int_as_float(__float_as_int(v.z) ^ 0x80000000);
  out[4] = fmaxf(v.x, max(v.y, v.z)) + min(3, 5) + __popc(255u) + __clz(1);
  out[5] = __expf(v.x) + tanhf(v.y) + __ldg(in + 3) + kTable[1];
  out[6] = v.x * v.y + v.z;
}

#define BAIT(name) __shared__ int name##_bait[2];

template <class T, int N>
struct Row {
  T v[N];
};

// Declarations in many forms, and words that are none: __shared__ int comment[2];
template <class T>
__global__ void declarations(int* out) {
  volatile __shared__ T a[1 << 1], b;
  __shared__ Row<T, 2> rows[2], *where;
  __shared__ /* __shared__ int inner; */ __align__(8) unsigned char
      bytes[4][2];
  const char* text = "// __shared__ int string[2];";
  BAIT(macro)
  if (threadIdx.x == 0) {
    a[1] = b = 5;
    where = &rows[1];
    where->v[1] = 6;
    bytes[3][1] = 7;
    macro_bait[1] = 8;
  }
  __syncthreads();
  if (threadIdx.x != 1) return;
  out[0] = a[1] + b;
  out[1] = rows[1].v[1];
  out[2] = bytes[3][1];
  out[3] = macro_bait[1];
  out[4] = text[0] == '/' && __LINE__ == 141;
}

// One warp waits at a barrier while the other works on among itself and exits.
__global__ void warps_part(int* out) {
  __shared__ int total;
  if (threadIdx.x >= 32) {
    int v = threadIdx.x;
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
    if (threadIdx.x == 32) total = v;
    return;
  }
  __syncthreads();
  out[threadIdx.x] = total;
  __syncthreads();
  out[threadIdx.x] += threadIdx.x;
}

// Ends only if both blocks run at the same time.
__global__ void rendezvous(int* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) < 2) {
    }
  }
  __syncthreads();
}
