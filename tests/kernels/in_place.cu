// A kernel that must not run a block twice, with barriers, and one that fills the register file.

__global__ void stir(float* x, int rounds) {
  __shared__ float held[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  float value = x[i];
  for (int round = 0; round < rounds; round++) {
    held[threadIdx.x] = value;
    __syncthreads();
    value = held[(threadIdx.x + 1) % 64] + 1.0f;
    __syncthreads();
  }
  x[i] = value;
}

__global__ void __launch_bounds__(1024, 1) fill_registers(float* x, int rounds) {
  float r[48];
#pragma unroll
  for (int j = 0; j < 48; j++) r[j] = x[blockIdx.x * 1024 + threadIdx.x] + j;
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int j = 0; j < 48; j++) r[j] = fmaf(r[j], 0.5f, r[(j + 7) % 48] * 0.25f);
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 48; j++) sum += r[j];
  x[blockIdx.x * 1024 + threadIdx.x] = sum;
}
