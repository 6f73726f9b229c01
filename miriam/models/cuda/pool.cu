// Pooling over windows and over whole channels. fp32, NCHW, one image.

// Largest value of each Kernel x Kernel window, clipped at the border; a thread per output.
template <int Kernel, int Stride>
__global__ void __launch_bounds__(256)
    max_pool(const float* __restrict__ input, float* __restrict__ output, int channels, int height,
             int width, int out_height, int out_width, int padding) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index < channels * out_height * out_width) {
    const int channel = index / (out_height * out_width);
    const int top = index / out_width % out_height * Stride - padding;
    const int left = index % out_width * Stride - padding;
    const float* plane = input + channel * height * width;
    float best = -3.402823466e38f;
#pragma unroll
    for (int i = 0; i < Kernel; ++i) {
#pragma unroll
      for (int j = 0; j < Kernel; ++j) {
        const int y = top + i;
        const int x = left + j;
        if (y >= 0 && y < height && x >= 0 && x < width) {
          const float value = plane[y * width + x];
          best = value > best ? value : best;
        }
      }
    }
    output[index] = best;
  }
}

// Mean of each Kernel x Kernel window over the values inside the image; a thread per output.
template <int Kernel, int Stride>
__global__ void __launch_bounds__(256)
    average_pool(const float* __restrict__ input, float* __restrict__ output, int channels,
                 int height, int width, int out_height, int out_width) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index < channels * out_height * out_width) {
    const int channel = index / (out_height * out_width);
    const int top = index / out_width % out_height * Stride;
    const int left = index % out_width * Stride;
    const float* plane = input + channel * height * width;
    float sum = 0.0f;
    int count = 0;
#pragma unroll
    for (int i = 0; i < Kernel; ++i) {
#pragma unroll
      for (int j = 0; j < Kernel; ++j) {
        if (top + i < height && left + j < width) {
          sum += plane[(top + i) * width + left + j];
          ++count;
        }
      }
    }
    output[index] = sum / count;
  }
}

// Mean of each channel; a warp per channel, eight channels per block.
__global__ void __launch_bounds__(256)
    global_average_pool(const float* __restrict__ input, float* __restrict__ output, int channels,
                        int pixels) {
  const int channel = blockIdx.x * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  if (channel < channels) {
    for (int i = lane; i < pixels; i += 32) sum += input[channel * pixels + i];
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  }
  if (lane == 0 && channel < channels) output[channel] = sum / pixels;
}
