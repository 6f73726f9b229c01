__device__ void meet(float* tile) {
  __syncthreads();
  tile[threadIdx.x] *= 2.0f;
}

// Threads past the end leave before the barriers.
__global__ void reverse(float* data, int n) {
  extern __shared__ float tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = data[i];
  meet(tile);
  __syncthreads();
  data[i] = tile[blockDim.x - 1 - threadIdx.x];
}

// A warp per row; shared memory, so that blocks are kept apart.
__global__ void rows(const float* in, float* out, int count) {
  __shared__ float last[4];
  const int row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= count) return;
  const float sum = in[row] + __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 16);
  last[threadIdx.x / 32] = sum;
  out[row] = last[threadIdx.x / 32];
}
