// Activations and normalisation, element by element or over a short vector. fp32.

// data[i] = max(data[i], 0), in place; a thread per float4, `quads` of them.
__global__ void __launch_bounds__(128) relu_in_place(float* data, int quads) {
  const int index = blockIdx.x * 128 + threadIdx.x;
  if (index < quads) {
    float4 value = reinterpret_cast<float4*>(data)[index];
    value.x = value.x > 0.0f ? value.x : 0.0f;
    value.y = value.y > 0.0f ? value.y : 0.0f;
    value.z = value.z > 0.0f ? value.z : 0.0f;
    value.w = value.w > 0.0f ? value.w : 0.0f;
    reinterpret_cast<float4*>(data)[index] = value;
  }
}

// output[i] = act(sum over p of parts[p][i] [+ output[i]]), in the order of the parts; a thread per
// float4, `quads` of them in a part.
__global__ void __launch_bounds__(128)
    sum_parts(const float* __restrict__ parts, float* output, int quads, int count, int relu,
              int accumulate) {
  const int index = blockIdx.x * 128 + threadIdx.x;
  if (index < quads) {
    const float4* part = reinterpret_cast<const float4*>(parts) + index;
    float4 sum = part[0];
    for (int p = 1; p < count; ++p) {
      const float4 next = part[p * quads];
      sum.x += next.x;
      sum.y += next.y;
      sum.z += next.z;
      sum.w += next.w;
    }
    float4* out = reinterpret_cast<float4*>(output) + index;
    if (accumulate != 0) {
      const float4 old = *out;
      sum.x += old.x;
      sum.y += old.y;
      sum.z += old.z;
      sum.w += old.w;
    }
    if (relu != 0) {
      sum.x = sum.x > 0.0f ? sum.x : 0.0f;
      sum.y = sum.y > 0.0f ? sum.y : 0.0f;
      sum.z = sum.z > 0.0f ? sum.z : 0.0f;
      sum.w = sum.w > 0.0f ? sum.w : 0.0f;
    }
    *out = sum;
  }
}

// Local response norm across Size neighbouring channels, exponent 3/4; a thread per element.
//     output = input / (1 + alpha / Size * sum of squares) ^ (3/4)
template <int Size>
__global__ void __launch_bounds__(256)
    local_response_norm(const float* __restrict__ input, float* __restrict__ output, int channels,
                        int pixels, float alpha) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index < channels * pixels) {
    const int channel = index / pixels;
    float squares = 0.0f;
#pragma unroll
    for (int i = -(Size / 2); i <= Size / 2; ++i) {
      if (channel + i >= 0 && channel + i < channels) {
        const float value = input[index + i * pixels];
        squares = fmaf(value, value, squares);
      }
    }
    const float root = sqrtf(fmaf(alpha / Size, squares, 1.0f));
    output[index] = input[index] / (root * sqrtf(root));
  }
}

// data = exp(data - max) / sum of exp(data - max) over `count` values, in place; one block.
__global__ void __launch_bounds__(256) softmax_in_place(float* data, int count) {
  __shared__ float partial[8];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  float largest = -3.402823466e38f;
  for (int i = threadIdx.x; i < count; i += 256) {
    const float value = data[i];
    largest = value > largest ? value : largest;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, offset);
    largest = other > largest ? other : largest;
  }
  if (lane == 0) partial[warp] = largest;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = partial[i] > largest ? partial[i] : largest;
  __syncthreads();

  float sum = 0.0f;
  for (int i = threadIdx.x; i < count; i += 256) sum += expf(data[i] - largest);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += partial[i];
  for (int i = threadIdx.x; i < count; i += 256) data[i] = expf(data[i] - largest) / sum;
}
