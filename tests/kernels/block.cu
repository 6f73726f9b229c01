// Kernels with barriers, each with something that a split into regions has to keep right.

// A barrier in a loop, one that everybody leaves at once, and a loop that ends with its body.
__global__ void loops(int* data, int rounds) {
  __shared__ int tile[96];
  const int t = threadIdx.x;
  int sum = data[blockIdx.x * blockDim.x + t], turn = 0;
  while (true) {
    tile[t] = sum;
    __syncthreads();
    sum += tile[(t + 1) % blockDim.x] * (turn + 1);
    __syncthreads();
    if (++turn == rounds) break;
    if (turn % 2 == 0) continue;
    tile[t] = sum ^ turn;
    __syncthreads();
    sum -= tile[(t + 7) % blockDim.x];
    __syncthreads();
  }
  do {
    tile[t] = sum;
    __syncthreads();
    sum = sum * 3 + tile[blockDim.x - 1 - t];
    __syncthreads();
    turn -= 2;
  } while (turn > 0);
  data[blockIdx.x * blockDim.x + t] = sum;
}

// What threads that have returned left behind, and what those that are left agree on.
__global__ void leaving(int* data, const int* limits, int n) {
  __shared__ int tile[96];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i;
  if (i >= n) return;
  const int limit = limits[blockIdx.x];
  __syncthreads();
  int sum = tile[(threadIdx.x + 5) % blockDim.x];
  for (int k = 0; k < limit; ++k) {
    if (data[i] == k) return;
    __syncthreads();
    tile[threadIdx.x] = sum + k;
    __syncthreads();
    sum += tile[(threadIdx.x + 1) % blockDim.x];
  }
  if (limit > 3) return;
  __syncthreads();
  data[i] = sum;
}

__global__ void voting(int* data, int* votes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = data[i];
  const int many = __syncthreads_count(value > 0);
  while (__syncthreads_or(value > n)) value = value > n ? value / 2 : value;
  const bool all = __syncthreads_and(value <= n) != 0;
  if (__syncthreads_count(value % 3 == 0) > 9) {
    __syncthreads();
    value += 1000;
  }
  value += __syncthreads_or(value == 5);
  data[i] = value;
  votes[i] = many * 2 + all;
}

struct Pair {
  int first;
  float second;
};

// Declarations of all sorts that live across barriers.
__global__ void declarations(const float* in, float* out, int n) {
  extern __shared__ float line[];
  const int t = threadIdx.x + blockDim.x * threadIdx.y, size = blockDim.x * blockDim.y;
  const float* row = in + blockIdx.x * size;
  float first = row[t], rest[3] = {1.0f, first}, *middle = &rest[1];
  auto twice = 2.0f * first;
  const auto& seen = rest[2];
  Pair pair = {t, first};
  Pair other;
  unsigned char small = t;
  float table[2][2] = {{first, 1.0f}, {2.0f, twice}};
  line[t] = twice;
  __syncthreads();
  *middle += line[(t + 1) % size];
  rest[2] = seen + table[1][1];
  other.second = pair.second + small;
  pair.first += n;
  n += t;
  __syncthreads();
  line[t] = rest[1] + table[0][0];
  __syncthreads();
  {
    float first = line[(t + 3) % size];
    __syncthreads();
    line[t] = first + pair.first;
    __syncthreads();
    twice += first;
  }
  out[blockIdx.x * size + t] = first + twice + seen + other.second + line[size - 1 - t] + n;
}

__global__ void lambdas(int* data, int n) {
  __shared__ int tile[64];
  const int t = threadIdx.x;
  int sum = data[blockIdx.x * 64 + t];
  auto at = [=](int by) { return (t + by + n) % 64; };
  auto add = [&](int by) { sum += tile[at(by)]; };
  tile[t] = sum;
  __syncthreads();
  add(3);
  __syncthreads();
  tile[t] = sum * at(1);
  __syncthreads();
  add(1);
  data[blockIdx.x * 64 + t] = sum;
}

// All threads agree on the way through, not on what they do on it.
__global__ void ways(int* data, int way, int n) {
  __shared__ int tile[70];
  int value = data[blockIdx.x * blockDim.x + threadIdx.x], steps = 0;
  for (int half = n; half > 1; half /= 2) ++steps;
  switch (way) {
    case 0:
      tile[threadIdx.x] = value;
      __syncthreads();
      value += tile[0];
    case 1: {
      const int last = value + 1;
      __syncthreads();
      tile[threadIdx.x] = last;
      __syncthreads();
      value = tile[(threadIdx.x + steps) % blockDim.x];
      break;
    }
    default:
      value = -value;
  }
  if (n > 4) {
    __syncthreads();
    tile[threadIdx.x] = value;
  } else {
    value = 3;
  }
  if (n < 0) return;
  __syncthreads();
  if (n > 4) value += tile[blockDim.x - 1 - threadIdx.x];
  for (int i = 0, j = n; i < j; ++i, j -= 2) {
    for (int k = 0; k < 2; ++k) {
      __syncthreads();
      if (threadIdx.x % 2 == k) tile[threadIdx.x] = value + i;
      __syncthreads();
      value ^= tile[threadIdx.x / 2];
    }
  }
  data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

// Barriers in helpers: with results, template arguments and defaults, in one another.
__device__ int shifted(int* tile, int value, int by = 2) {
  tile[threadIdx.x] = value;
  __syncthreads();
  const int found = tile[(threadIdx.x + by) % blockDim.x];
  __syncthreads();
  return found;
}

template <class T, int By>
__device__ T smallest(T* tile, T value) {
  T best = value;
  for (int i = By; i < By + 3; ++i) {
    const T other = shifted(tile, best, i);
    best = other < best ? other : best;
  }
  return best;
}

namespace deep {
__device__ void settle(int& value, int* tile) {
  const int before = shifted(tile, value);
  value += before;
}
}  // namespace deep

__global__ void helpers(int* data, int n) {
  __shared__ int tile[64];
  int value = data[blockIdx.x * 64 + threadIdx.x];
  if (n > 2) value += shifted(tile, value * 3);
  deep::settle(value, tile);
  const int least = smallest<int, 3>(tile, value);
  data[blockIdx.x * 64 + threadIdx.x] = least - value;
}

// Whole warps: collectives between barriers, and a tail without them.
__global__ void sums(const float* in, float* out) {
  __shared__ float parts[4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = in[blockIdx.x * 128 + threadIdx.x];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < 4 ? parts[lane] : 0.0f;
    for (int by = 2; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
    if (lane == 0) out[blockIdx.x] = sum;
  }
}

// Pragmas before bodies without braces: around a barrier, in a way of an `if`, and inside a region.
__global__ void pragmas(int* data, int n) {
  __shared__ int tile[64];
  int sum = data[blockIdx.x * 64 + threadIdx.x];
  for (int i = 0; i < n; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      tile[threadIdx.x] = sum + i;
      __syncthreads();
      sum += tile[63 - threadIdx.x] * j;
      __syncthreads();
    }
  if (n > 2)
#pragma unroll 2
    for (int j = 0; j < 4; j++) sum ^= j * 77;
  else {
    tile[threadIdx.x] = sum;
    __syncthreads();
    sum = tile[63 - threadIdx.x];
  }
  for (int i = 0; i < n; i++)
#pragma unroll 2
    for (int j = 0; j < 3; j++) sum = sum * 3 + j;
  data[blockIdx.x * 64 + threadIdx.x] = sum;
}
