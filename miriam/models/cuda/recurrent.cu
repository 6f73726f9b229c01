// One time step of a recurrent cell: the product with the last hidden state and the gates. fp32.
//
// `gates` holds the products with this step's input, made beforehand for all steps, in torch's
// order of gates. The new hidden state replaces the first gate's values, in place; the next step
// finds it there as its `last`. A warp per hidden unit, four units per block; `hidden` is a
// multiple of 4. In the first step (first != 0) the last state is zero and is not read.

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// sum over k of weight[row of each gate][k] * last[k], by a warp; every lane gets the sums.
template <int Gates>
__device__ __forceinline__ void recurrent_products(const float* __restrict__ weight,
                                                   const float* last, int unit, int hidden,
                                                   int lane, float (&sum)[Gates]) {
  const int quads = hidden / 4;
  const float4* matrix = reinterpret_cast<const float4*>(weight);
  for (int k = lane; k < quads; k += 32) {
    const float4 h = reinterpret_cast<const float4*>(last)[k];
#pragma unroll
    for (int g = 0; g < Gates; ++g) {
      const float4 w = matrix[(g * hidden + unit) * quads + k];
      sum[g] = fmaf(w.x, h.x, sum[g]);
      sum[g] = fmaf(w.y, h.y, sum[g]);
      sum[g] = fmaf(w.z, h.z, sum[g]);
      sum[g] = fmaf(w.w, h.w, sum[g]);
    }
  }
#pragma unroll
  for (int g = 0; g < Gates; ++g) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      sum[g] += __shfl_xor_sync(0xffffffffu, sum[g], offset);
    }
  }
}

// Gates: reset, update, new.
__global__ void __launch_bounds__(128)
    gru_cell(const float* __restrict__ weight, const float* __restrict__ bias, const float* last,
             float* gates, int hidden, int first) {
  const int lane = threadIdx.x % 32;
  const int unit = blockIdx.x * 4 + threadIdx.x / 32;
  float sum[3] = {0.0f, 0.0f, 0.0f};
  if (first == 0) recurrent_products<3>(weight, last, unit, hidden, lane, sum);
  if (lane == 0) {
    const float reset = sigmoid(gates[unit] + (sum[0] + bias[unit]));
    const float update = sigmoid(gates[hidden + unit] + (sum[1] + bias[hidden + unit]));
    const float product = sum[2] + bias[2 * hidden + unit];
    const float fresh = tanhf(fmaf(reset, product, gates[2 * hidden + unit]));
    const float before = first != 0 ? 0.0f : last[unit];
    gates[unit] = fmaf(update, before - fresh, fresh);
  }
}

// Gates: input, forget, cell, output. The cell state is updated in place.
__global__ void __launch_bounds__(128)
    lstm_cell(const float* __restrict__ weight, const float* __restrict__ bias, const float* last,
              float* gates, float* cell, int hidden, int first) {
  const int lane = threadIdx.x % 32;
  const int unit = blockIdx.x * 4 + threadIdx.x / 32;
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (first == 0) recurrent_products<4>(weight, last, unit, hidden, lane, sum);
  if (lane == 0) {
    const float in = sigmoid(gates[unit] + (sum[0] + bias[unit]));
    const float forget = sigmoid(gates[hidden + unit] + (sum[1] + bias[hidden + unit]));
    const float fresh = tanhf(gates[2 * hidden + unit] + (sum[2] + bias[2 * hidden + unit]));
    const float out = sigmoid(gates[3 * hidden + unit] + (sum[3] + bias[3 * hidden + unit]));
    const float before = first != 0 ? 0.0f : cell[unit];
    const float after = fmaf(forget, before, in * fresh);
    cell[unit] = after;
    gates[unit] = out * tanhf(after);
  }
}
