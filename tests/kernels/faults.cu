// Kernels that break the execution model. Tests name the lines: change them together.
__global__ void divergent(int* out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}

__global__ void deadlock(int* out) {
  if (threadIdx.x == 3) {
    __syncthreads();
  } else {
    out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
  }
}

__global__ void foreign_mask(int* out) {
  out[threadIdx.x] = __shfl_sync(0xfu, 1, 0);
}

__global__ void overrun(int* out) {
  if (threadIdx.x == 2) out[64] = 1;
}

__device__ int sink(volatile int* deep, int n) {
  volatile int more[256];
  more[n % 256] = deep[0];
  return n == 0 ? more[0] : sink(more, n - 1) + more[1];
}

__global__ void overflow(int* out) {
  volatile int first[1] = {1};
  out[0] = sink(first, 1 << 20);
}

__global__ void division(int* out) { out[0] = 1 / out[0]; }

__global__ void failed_assertion(int* out) { assert(out[0] == 1); }

__global__ void second_block_diverges(int* out) {
  if (blockIdx.x == 5 && threadIdx.x == 1) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[blockIdx.x] = 1;
}
