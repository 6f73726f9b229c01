// Convolution of one image as an implicit matrix product. fp32, NCHW.
//
//     output[m][n] = act(bias[m] + sum over k of weight[m][k] * patch[k][n] [+ output[m][n]])
//
// m: output channel, n: output pixel, k: (input channel, filter row, filter column), the order in
// which torch stores a filter. A block of 128 threads makes a TileM x TileN tile of the output; a
// thread holds a piece of it, ThreadM x 4, in registers. Where the tile has fewer pieces than the
// block has threads, groups of threads share out k and are summed up at the end, always in the
// same order. Registers fetch the next slice of k while the block works on the present one.
//
// A long sum is made in parts, by as many layers of blocks (blockIdx.z): there are more blocks then,
// and each is done sooner. Each layer writes an output of its own, the first one with the bias, and
// sum_parts (pointwise.cu) adds them up.

constexpr int kThreads = 128;
constexpr int kThreadN = 4;

template <int TileM, int TileN, int ThreadM>
struct Tile {
  static constexpr int kPieces = TileM * TileN / (ThreadM * kThreadN);
  static constexpr int kGroups = kThreads / kPieces;
  static constexpr int kSlice = kGroups == 1 ? 16 : 32;
  static constexpr int kFetchA = TileM * kSlice / kThreads;
  static constexpr int kFetchB = TileN * kSlice / kThreads;
  static constexpr int kQuads = kSlice / 4;       // float4 per row of a slice of weights
  static constexpr int kRowsB = kThreads / TileN;  // rows of patches fetched at once
  static constexpr int kStrideA = TileM + 4;       // spreads the rows over the banks
  static_assert(kPieces * kGroups == kThreads && kFetchA % 4 == 0, "tile must fit the block");
  static_assert(kGroups == 1 || kGroups * TileM <= 2 * kSlice, "partial sums must fit b_tile");
};

// One slice of TileM rows of weights into registers, zeros where there are none.
template <class T, bool Vector>
__device__ __forceinline__ void fetch_weights(float (&fetched)[T::kFetchA],
                                              const float* __restrict__ weight, int thread,
                                              int first_channel, int first_k, int out_channels,
                                              int depth) {
#pragma unroll
  for (int i = 0; i < T::kFetchA; i += 4) {
    const int quad = thread + i / 4 * kThreads;
    const int m = first_channel + quad / T::kQuads;
    const int k = first_k + quad % T::kQuads * 4;
    const float* row = weight + m * depth + k;
    if (Vector) {
      float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (m < out_channels && k < depth) value = *reinterpret_cast<const float4*>(row);
      fetched[i] = value.x;
      fetched[i + 1] = value.y;
      fetched[i + 2] = value.z;
      fetched[i + 3] = value.w;
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        fetched[i + e] = m < out_channels && k + e < depth ? row[e] : 0.0f;
      }
    }
  }
}

// One slice of one pixel's patch into registers, zeros where it leaves the image. (top, left):
// the patch's corner, outside the image where there is padding.
template <class T, int Kernel>
__device__ __forceinline__ void fetch_patch(float (&fetched)[T::kFetchB],
                                            const float* __restrict__ input, bool fetches,
                                            int first_k, int depth, int top, int left, int height,
                                            int width) {
  const float* corner = input + top * width + left;
#pragma unroll
  for (int i = 0; i < T::kFetchB; ++i) {
    const int k = first_k + i * T::kRowsB;
    const int channel = k / (Kernel * Kernel);
    const int y = k % (Kernel * Kernel) / Kernel;
    const int x = k % Kernel;
    const bool inside = fetches && k < depth && top + y >= 0 && top + y < height &&
                        left + x >= 0 && left + x < width;
    fetched[i] = inside ? corner[(channel * height + y) * width + x] : 0.0f;
  }
}

// The fetched slice into shared memory, weights transposed.
template <class T, int TileN>
__device__ __forceinline__ void stage(float* a_tile, float* b_tile,
                                      const float (&fetched_a)[T::kFetchA],
                                      const float (&fetched_b)[T::kFetchB], int thread) {
#pragma unroll
  for (int i = 0; i < T::kFetchA; ++i) {
    const int quad = thread + i / 4 * kThreads;
    a_tile[(quad % T::kQuads * 4 + i % 4) * T::kStrideA + quad / T::kQuads] = fetched_a[i];
  }
#pragma unroll
  for (int i = 0; i < T::kFetchB; ++i) {
    b_tile[(thread / TileN + i * T::kRowsB) * TileN + thread % TileN] = fetched_b[i];
  }
}

// Adds a group's share of a slice to its piece: a column of weights times a row of patches per k.
template <int ThreadM, int Steps, int StrideA, int StrideB>
__device__ __forceinline__ void multiply(float (&sum)[ThreadM][kThreadN], const float* a_column,
                                         const float* b_row) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    float a[ThreadM];
#pragma unroll
    for (int i = 0; i < ThreadM; i += 4) {
      const float4 value = *reinterpret_cast<const float4*>(a_column + step * StrideA + i);
      a[i] = value.x;
      a[i + 1] = value.y;
      a[i + 2] = value.z;
      a[i + 3] = value.w;
    }
    const float4 b = *reinterpret_cast<const float4*>(b_row + step * StrideB);
#pragma unroll
    for (int i = 0; i < ThreadM; ++i) {
      sum[i][0] = fmaf(a[i], b.x, sum[i][0]);
      sum[i][1] = fmaf(a[i], b.y, sum[i][1]);
      sum[i][2] = fmaf(a[i], b.z, sum[i][2]);
      sum[i][3] = fmaf(a[i], b.w, sum[i][3]);
    }
  }
}

// Bias, the value already there, ReLU, and the row of a piece goes out; n is its first pixel.
__device__ __forceinline__ void store_row(const float (&sum)[kThreadN], float shift, float* out,
                                          int n, int pixels, int relu, int accumulate) {
  float result[kThreadN];
#pragma unroll
  for (int j = 0; j < kThreadN; ++j) {
    float value = sum[j] + shift;
    if (accumulate != 0 && n + j < pixels) value += out[j];
    result[j] = relu != 0 && !(value > 0.0f) ? 0.0f : value;
  }
  if (pixels % 4 == 0) {
    *reinterpret_cast<float4*>(out) = make_float4(result[0], result[1], result[2], result[3]);
  } else {
#pragma unroll
    for (int j = 0; j < kThreadN; ++j) {
      if (n + j < pixels) out[j] = result[j];
    }
  }
}

// Vector: the rows of `weight` are a whole number of float4 long. accumulate: the result is added
// to what `output` holds (a residual connection, in place).
template <int Kernel, int Stride, int TileM, int TileN, int ThreadM, bool Vector>
__global__ void __launch_bounds__(kThreads)
    conv2d(const float* __restrict__ input, const float* __restrict__ weight,
           const float* __restrict__ bias, float* output, int in_channels, int height, int width,
           int out_channels, int out_width, int pixels, int padding, int part_slices, int relu,
           int accumulate) {
  using T = Tile<TileM, TileN, ThreadM>;
  alignas(16) __shared__ float a_tile[T::kSlice * T::kStrideA];
  alignas(16) __shared__ float b_tile[T::kSlice * TileN];

  const int thread = threadIdx.x;
  const int depth = in_channels * Kernel * Kernel;
  const int first_channel = blockIdx.y * TileM;
  const int first_pixel = blockIdx.x * TileN;

  // The pixel whose patch this thread fetches is the same in every slice.
  const int fetch_pixel = first_pixel + thread % TileN;
  const int fetch_row = thread / TileN;
  const int top = fetch_pixel / out_width * Stride - padding;
  const int left = fetch_pixel % out_width * Stride - padding;

  const int group = thread / T::kPieces;
  const int piece = thread % T::kPieces;
  const int piece_m = piece / (TileN / kThreadN) * ThreadM;
  const int piece_n = piece % (TileN / kThreadN) * kThreadN;
  constexpr int kShare = T::kSlice / T::kGroups;

  float sum[ThreadM][kThreadN] = {};
  float fetched_a[T::kFetchA];
  float fetched_b[T::kFetchB];
  const int slices = (depth + T::kSlice - 1) / T::kSlice;
  const int first = blockIdx.z * part_slices;
  const int end = first + part_slices < slices ? first + part_slices : slices;
  // Turn s fetches slice s and works on slice s - 1: one turn more than there are slices.
  for (int s = first; s <= end; ++s) {
    if (s < end) {
      const int first_k = s * T::kSlice;
      fetch_weights<T, Vector>(fetched_a, weight, thread, first_channel, first_k, out_channels,
                               depth);
      fetch_patch<T, Kernel>(fetched_b, input, fetch_pixel < pixels, first_k + fetch_row, depth,
                             top, left, height, width);
    }
    if (s > first) {
      multiply<ThreadM, kShare, T::kStrideA, TileN>(
          sum, a_tile + group * kShare * T::kStrideA + piece_m,
          b_tile + group * kShare * TileN + piece_n);
    }
    __syncthreads();
    if (s < end) stage<T, TileN>(a_tile, b_tile, fetched_a, fetched_b, thread);
    __syncthreads();
  }

  constexpr int kPieceSize = ThreadM * kThreadN;
#pragma unroll
  for (int half = T::kGroups / 2; half > 0; half /= 2) {
    if (group >= half && group < 2 * half) {
#pragma unroll
      for (int e = 0; e < kPieceSize; ++e) {
        b_tile[((group - half) * kPieceSize + e) * T::kPieces + piece] =
            sum[e / kThreadN][e % kThreadN];
      }
    }
    __syncthreads();
    if (group < half) {
#pragma unroll
      for (int e = 0; e < kPieceSize; ++e) {
        sum[e / kThreadN][e % kThreadN] += b_tile[(group * kPieceSize + e) * T::kPieces + piece];
      }
    }
    __syncthreads();
  }

  const int n = first_pixel + piece_n;
  if (group == 0 && n < pixels) {
    float* part = output + blockIdx.z * out_channels * pixels;
#pragma unroll
    for (int i = 0; i < ThreadM; ++i) {
      const int m = first_channel + piece_m + i;
      if (m < out_channels) {
        const float shift = blockIdx.z == 0 ? bias[m] : 0.0f;
        store_row(sum[i], shift, part + m * pixels + n, n, pixels, relu, accumulate);
      }
    }
  }
}
