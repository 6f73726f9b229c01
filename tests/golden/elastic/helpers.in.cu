namespace grid {
constexpr int kUnused = 3;
constexpr int kRows = 4;

template <class T>
struct Pair {
  T a, b;
};

__device__ int column();
__device__ int row(int step = kRows) { return blockIdx.y * step + column(); }
__device__ int column() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The launch bounds, the names and the defaults stay.
template <class T, int N>
__global__ void __launch_bounds__(128, 2) fill(Pair<T> pair, const __grid_constant__ Pair<int> fixed,
                                               T* out, int = 3) {
  const auto at = [=](int i) { return row(i) + kRows; };
  const auto by = [out](int i) -> T& { return out[i + column()]; };
  by(at(N)) = pair.a + fixed.b;
}
}  // namespace grid
