// What the doctor measures with: a short step, and steps that leave no register free.

extern "C" __global__ void busy(const float* in, float* out, int rounds) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  float value = in[at];
  for (int i = 0; i < rounds; ++i) value = fmaf(value, 1.0001f, 0.5f);
  out[at] = value;
}

// 1,024 threads of 64 registers are the whole register file of an SM.
extern "C" __global__ void __launch_bounds__(1024, 1) fill(const float* in, float* out,
                                                           int rounds) {
  const unsigned at = blockIdx.x * 1024 + threadIdx.x;
  float values[48];
#pragma unroll
  for (int j = 0; j < 48; ++j) values[j] = in[(at + j * 1024) & 0xfffff];
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int j = 0; j < 48; ++j) values[j] = fmaf(values[j], 1.0001f, values[(j + 7) % 48]);
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 48; ++j) sum += values[j];
  out[at & 0xfffff] = sum;
}

// A control word as a kernel writes it: the way that has to wait for room on an SM.
extern "C" __global__ void assign(unsigned* word, unsigned value) { *word = value; }
