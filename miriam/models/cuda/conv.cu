// Convolution of one image as an implicit matrix product. fp32, NCHW.
//
//     output[m][n] = act(bias[m] + sum over k of weight[m][k] * patch[k][n] [+ output[m][n]])
//
// m: output channel, n: output pixel, k: (input channel, filter row, filter column), the order in
// which torch stores a filter. A block of 128 threads makes a TileM x TileN tile of the output; a
// thread holds ThreadM x 4 of it in registers. Where the tile has fewer such pieces than the
// block has threads, groups of threads share out k and are summed up at the end, always in the
// same order. Registers fetch the next slice of k while the block works on the present one.
//
// Vector: the rows of `weight` are a whole number of float4 long.
// accumulate: the result is added to what `output` holds (a residual connection, in place).

template <int Kernel, int Stride, int TileM, int TileN, int ThreadM, bool Vector>
__global__ void __launch_bounds__(128)
    conv2d(const float* __restrict__ input, const float* __restrict__ weight,
           const float* __restrict__ bias, float* output, int in_channels, int height, int width,
           int out_channels, int out_width, int pixels, int padding, int relu, int accumulate) {
  constexpr int kThreads = 128;
  constexpr int kThreadN = 4;
  constexpr int kTaps = Kernel * Kernel;
  constexpr int kPieces = TileM * TileN / (ThreadM * kThreadN);
  constexpr int kGroups = kThreads / kPieces;
  constexpr int kSlice = kGroups == 1 ? 16 : 32;
  constexpr int kGroupSlice = kSlice / kGroups;
  constexpr int kFetchA = TileM * kSlice / kThreads;
  constexpr int kFetchB = TileN * kSlice / kThreads;
  constexpr int kRowsB = kThreads / TileN;
  constexpr int kQuads = kSlice / 4;
  static_assert(kPieces * kGroups == kThreads && kFetchA % 4 == 0, "tile does not fit the block");
  static_assert(kGroups == 1 || kGroups * TileM / 2 <= kSlice, "partial sums must fit in b_tile");

  alignas(16) __shared__ float a_tile[kSlice * (TileM + 4)];
  alignas(16) __shared__ float b_tile[kSlice * TileN];

  const int thread = threadIdx.x;
  const int depth = in_channels * kTaps;
  const int first_channel = blockIdx.y * TileM;
  const int first_pixel = blockIdx.x * TileN;

  // The pixel whose patches this thread fetches is the same in every slice.
  const int fetch_pixel = first_pixel + thread % TileN;
  const int fetch_row = thread / TileN;
  const int top = fetch_pixel / out_width * Stride - padding;
  const int left = fetch_pixel % out_width * Stride - padding;
  const bool fetches = fetch_pixel < pixels;
  const float* corner = input + top * width + left;

  const int group = thread / kPieces;
  const int piece = thread % kPieces;
  const int piece_m = piece / (TileN / kThreadN) * ThreadM;
  const int piece_n = piece % (TileN / kThreadN) * kThreadN;

  float sum[ThreadM][kThreadN];
#pragma unroll
  for (int i = 0; i < ThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadN; ++j) sum[i][j] = 0.0f;
  }
  float fetched_a[kFetchA];
  float fetched_b[kFetchB];

  const int slices = (depth + kSlice - 1) / kSlice;
  // One turn more than there are slices: turn s fetches slice s and works on slice s - 1.
  for (int s = 0; s <= slices; ++s) {
    if (s < slices) {
#pragma unroll
      for (int i = 0; i < kFetchA / 4; ++i) {
        const int quad = thread + i * kThreads;
        const int m = first_channel + quad / kQuads;
        const int k = s * kSlice + quad % kQuads * 4;
        const float* row = weight + m * depth + k;
        if (Vector) {
          float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
          if (m < out_channels && k < depth) value = *reinterpret_cast<const float4*>(row);
          fetched_a[i * 4] = value.x;
          fetched_a[i * 4 + 1] = value.y;
          fetched_a[i * 4 + 2] = value.z;
          fetched_a[i * 4 + 3] = value.w;
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            fetched_a[i * 4 + e] = m < out_channels && k + e < depth ? row[e] : 0.0f;
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kFetchB; ++i) {
        const int k = s * kSlice + fetch_row + i * kRowsB;
        const int channel = k / kTaps;
        const int y = k % kTaps / Kernel;
        const int x = k % Kernel;
        const bool inside = fetches && k < depth && top + y >= 0 && top + y < height &&
                            left + x >= 0 && left + x < width;
        fetched_b[i] = inside ? corner[(channel * height + y) * width + x] : 0.0f;
      }
    }
    if (s > 0) {
#pragma unroll
      for (int step = 0; step < kGroupSlice; ++step) {
        const int k = group * kGroupSlice + step;
        float a[ThreadM];
        float b[kThreadN];
#pragma unroll
        for (int i = 0; i < ThreadM; i += 4) {
          const float4 value =
              *reinterpret_cast<const float4*>(&a_tile[k * (TileM + 4) + piece_m + i]);
          a[i] = value.x;
          a[i + 1] = value.y;
          a[i + 2] = value.z;
          a[i + 3] = value.w;
        }
        const float4 value = *reinterpret_cast<const float4*>(&b_tile[k * TileN + piece_n]);
        b[0] = value.x;
        b[1] = value.y;
        b[2] = value.z;
        b[3] = value.w;
#pragma unroll
        for (int i = 0; i < ThreadM; ++i) {
#pragma unroll
          for (int j = 0; j < kThreadN; ++j) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
      }
    }
    __syncthreads();
    if (s < slices) {
#pragma unroll
      for (int i = 0; i < kFetchA; ++i) {
        const int quad = thread + i / 4 * kThreads;
        a_tile[(quad % kQuads * 4 + i % 4) * (TileM + 4) + quad / kQuads] = fetched_a[i];
      }
#pragma unroll
      for (int i = 0; i < kFetchB; ++i) {
        b_tile[(fetch_row + i * kRowsB) * TileN + thread % TileN] = fetched_b[i];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int half = kGroups / 2; half > 0; half /= 2) {
    if (group >= half && group < 2 * half) {
#pragma unroll
      for (int e = 0; e < ThreadM * kThreadN; ++e) {
        b_tile[((group - half) * ThreadM * kThreadN + e) * kPieces + piece] =
            sum[e / kThreadN][e % kThreadN];
      }
    }
    __syncthreads();
    if (group < half) {
#pragma unroll
      for (int e = 0; e < ThreadM * kThreadN; ++e) {
        sum[e / kThreadN][e % kThreadN] +=
            b_tile[(group * ThreadM * kThreadN + e) * kPieces + piece];
      }
    }
    __syncthreads();
  }

  if (group == 0) {
    const int n = first_pixel + piece_n;
    const bool quads = pixels % 4 == 0;
#pragma unroll
    for (int i = 0; i < ThreadM; ++i) {
      const int m = first_channel + piece_m + i;
      if (m < out_channels && n < pixels) {
        float* out = output + m * pixels + n;
        const float shift = bias[m];
        float result[kThreadN];
#pragma unroll
        for (int j = 0; j < kThreadN; ++j) {
          float value = sum[i][j] + shift;
          if (accumulate != 0 && n + j < pixels) value += out[j];
          result[j] = relu != 0 && !(value > 0.0f) ? 0.0f : value;
        }
        if (quads) {
          *reinterpret_cast<float4*>(out) =
              make_float4(result[0], result[1], result[2], result[3]);
        } else {
#pragma unroll
          for (int j = 0; j < kThreadN; ++j) {
            if (n + j < pixels) out[j] = result[j];
          }
        }
      }
    }
  }
}
