// Dense layer over a few vectors (batch 1, or the time steps of a sequence). fp32.
//
//     output[c][row] = act(bias[row] + sum over k of weight[row][k] * input[c][k])
//
// A warp makes two rows for Columns vectors, or one row for one vector: each float4 of weights, read
// once and in order, meets all vectors. A block has four warps. `inputs` is a multiple of 4.

template <int Columns>
__global__ void __launch_bounds__(128)
    dense(const float* __restrict__ input, const float* __restrict__ weight,
          const float* __restrict__ bias, float* __restrict__ output, int inputs, int outputs,
          int relu) {
  constexpr int kRows = Columns == 1 ? 1 : 2;
  constexpr int kUnroll = 4 / kRows;
  constexpr int kSums = kRows * Columns;
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

  float sum[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) sum[i] = 0.0f;
#pragma unroll kUnroll
  for (int k = lane; k < quads; k += 32) {
    float4 w[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) w[r] = rows[r][k];
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const float4 x = vectors[c * quads + k];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float& total = sum[r * Columns + c];
        total = fmaf(w[r].x, x.x, total);
        total = fmaf(w[r].y, x.y, total);
        total = fmaf(w[r].z, x.z, total);
        total = fmaf(w[r].w, x.w, total);
      }
    }
  }

  // Half of the lanes take over half of the sums, and so on: each lane ends with one sum, which
  // 32 / kSums lanes have in common.
  int held = kSums / 2;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const bool upper = (lane & offset) != 0;
    if (held > 0) {
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) {
        if (i < held) {
          const float sent = upper ? sum[i] : sum[i + held];
          const float kept = upper ? sum[i + held] : sum[i];
          sum[i] = kept + __shfl_xor_sync(0xffffffffu, sent, offset);
        }
      }
    } else {
      sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], offset);
    }
    held /= 2;
  }
  const int mine = lane / (32 / kSums);
  const int row = first_row + mine / Columns;
  if (lane % (32 / kSums) == 0 && row < outputs) {
    const float value = sum[0] + bias[row];
    output[(first_column + mine % Columns) * outputs + row] =
        relu != 0 && !(value > 0.0f) ? 0.0f : value;
  }
}
