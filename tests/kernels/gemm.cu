// A 64x64 tile of C = A * B per block of 256 threads: 4x4 registers a thread, 16 deep tiles.
#define TILE 64
#define DEPTH 16

__global__ void __launch_bounds__(256)
gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n,
     int k) {
  __shared__ float sa[DEPTH][TILE];
  __shared__ float sb[DEPTH][TILE];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  float acc[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += DEPTH) {
    for (int i = t; i < TILE * DEPTH; i += 256) {
      const int row = row0 + i / DEPTH, kk = k0 + i % DEPTH;
      sa[i % DEPTH][i / DEPTH] = row < m && kk < k ? a[row * k + kk] : 0.0f;
      const int kb = k0 + i / TILE, col = col0 + i % TILE;
      sb[i / TILE][i % TILE] = kb < k && col < n ? b[kb * n + col] : 0.0f;
    }
    __syncthreads();
    for (int kk = 0; kk < DEPTH; ++kk) {
      float x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = sa[kk][ty * 4 + i];
      for (int j = 0; j < 4; ++j) y[j] = sb[kk][tx * 4 + j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + ty * 4 + i, col = col0 + tx * 4 + j;
      if (row < m && col < n) c[row * n + col] = acc[i][j];
    }
}
