// Dense layer over a few vectors (batch 1, or the time steps of a sequence). fp32.
//
//     output[c][row] = act(bias[row] + sum over k of weight[row][k] * input[c][k])
//
// A warp makes two rows for Columns vectors: each float4 of weights, read once and in order, meets
// all vectors. A block of four warps covers eight rows. `inputs` is a multiple of 4.

template <int Columns>
__global__ void __launch_bounds__(128)
    dense(const float* __restrict__ input, const float* __restrict__ weight,
          const float* __restrict__ bias, float* __restrict__ output, int inputs, int outputs,
          int relu) {
  constexpr int kRows = 2;
  const int lane = threadIdx.x % 32;
  const int first_row = (blockIdx.x * 4 + threadIdx.x / 32) * kRows;
  const int first_column = blockIdx.y * Columns;
  const int quads = inputs / 4;

  const float4* vectors = reinterpret_cast<const float4*>(input) + first_column * quads;
  const float4* matrix = reinterpret_cast<const float4*>(weight);
  const float4* rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    // A row past the end repeats the last one and is not stored.
    const int row = first_row + r < outputs ? first_row + r : outputs - 1;
    rows[r] = matrix + row * quads;
  }

  float sum[kRows][Columns];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Columns; ++c) sum[r][c] = 0.0f;
  }
#pragma unroll 2
  for (int k = lane; k < quads; k += 32) {
    float4 w[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) w[r] = rows[r][k];
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const float4 x = vectors[c * quads + k];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        sum[r][c] = fmaf(w[r].x, x.x, sum[r][c]);
        sum[r][c] = fmaf(w[r].y, x.y, sum[r][c]);
        sum[r][c] = fmaf(w[r].z, x.z, sum[r][c]);
        sum[r][c] = fmaf(w[r].w, x.w, sum[r][c]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) {
        sum[r][c] += __shfl_down_sync(0xffffffffu, sum[r][c], offset);
      }
      if (lane == 0 && first_row + r < outputs) {
        const float value = sum[r][c] + bias[first_row + r];
        output[(first_column + c) * outputs + first_row + r] =
            relu != 0 && !(value > 0.0f) ? 0.0f : value;
      }
    }
  }
}
