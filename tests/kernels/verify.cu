// Kernels as users write them, and some that must not be called equal.
#include <cstdio>

template <int kRadius>
__global__ void blur(const float* __restrict__ in, float* out, int n) {
  extern __shared__ float line[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int at = threadIdx.x; at < blockDim.x + kRadius; at += blockDim.x) {
    const int from = blockIdx.x * blockDim.x + at;
    line[at] = from < n ? in[from] : 0.0f;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int r = 0; r <= kRadius; ++r) sum += line[threadIdx.x + r];
  if (i < n) out[i] = sum;
}

// In place: a block that runs twice shows.
__global__ void add(float* into, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) into[i] += from[i];
}

__global__ void count_blocks(unsigned* runs) {
  const unsigned flat = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (threadIdx.x == 0) atomicAdd(&runs[flat], 1u);
}

struct Scale {
  float by;
  int shift;
};

__global__ void scale(double* data, Scale scale) {
  data[blockIdx.x * blockDim.x + threadIdx.x] *= scale.by;
  data[blockIdx.x * blockDim.x + threadIdx.x] += scale.shift;
}

__device__ int total;

__global__ void sum_into_variable(const int* in) {
  atomicAdd(&total, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

// Turns NaN into NaN: poison in place of the input would hide everything.
__global__ void half(float* data) { data[blockIdx.x * blockDim.x + threadIdx.x] *= 0.5f; }

__global__ void zero_most(float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = i == 0 ? 1.0f : 0.0f;
}

__global__ void nothing(int* data, int n) {
  if (n < 0) data[0] = n;
}

__global__ void tickets(int* counter, int* order) {
  if (threadIdx.x == 0) order[atomicAdd(counter, 1)] = blockIdx.x;
}

__global__ void endless(int* out, int n) {
  for (int i = 1; n != 0; ++i) out[0] = i;
}

__global__ void beyond(int* data, int n) { data[n + threadIdx.x] = 1; }

__global__ void far_beyond(int* data) { data[(1 << 24) + threadIdx.x] = 1; }

__global__ void odd(int* data) {
  int block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  data[block] = block;
}

__global__ void same(const float* a, const float* b, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i] - b[i] + 1.0f;
}

int main() {
  blur<4><<<4, 64, 272>>>(nullptr, nullptr, 250);
  std::printf("done\n");
}
