// What the block forms need besides miriam_elastic.h: N logical threads on each physical one.
//
// Launch a block form with a one-dimensional block of P threads and the logical block's shape in
// MiriamLaunch. Logical thread t, counted x first, runs on physical thread t % P: where both sizes
// are multiples of 32, the lanes of a logical warp are those of a physical one.
//
//   kernel__block_slice<N>, kernel__block_persistent<N>, kernel__block_yield<N>
//
// as the forms without `block`. With N = 0, which only kernels without barriers have, P may be any
// number. Otherwise P has to be the logical threads over N, rounded up; the form traps if it is not.
#ifndef MIRIAM_BLOCK_H
#define MIRIAM_BLOCK_H

#ifdef __CUDACC__

// Physical threads for `threads` logical ones.
__host__ __device__ constexpr unsigned miriam_folded(unsigned threads, unsigned fold) {
  return fold == 0 ? threads : (threads + fold - 1) / fold;
}

#ifdef MIRIAM_RESIDENT_BLOCKS
#define MIRIAM_FOLDED_BOUNDS(threads, fold) \
  __launch_bounds__(miriam_folded(threads, fold), MIRIAM_RESIDENT_BLOCKS)
#else
#define MIRIAM_FOLDED_BOUNDS(threads, fold) __launch_bounds__(miriam_folded(threads, fold))
#endif

static __device__ __forceinline__ void miriam_stop() {
#ifdef __MIRIAM_HOST__
  __builtin_trap();
#else
  __trap();
#endif
}

static __device__ __forceinline__ dim3 miriam_shape(const MiriamLaunch& launch) {
  return dim3(launch.block_x, launch.block_y, launch.block_z);
}

// The logical threads of a block, and the index function that gives their coordinates.
template <int Fold>
struct MiriamThreads {
  static constexpr int fold = Fold;
  unsigned x, y, count;

  // Where `warps` is asked for, logical warps have to be physical ones; `rows`: and rows of them.
  __device__ __forceinline__ MiriamThreads(const MiriamLaunch& launch, bool warps, bool rows)
      : x(launch.block_x), y(launch.block_y), count(x * y * launch.block_z) {
    if (count == 0 || blockDim.y != 1 || blockDim.z != 1) miriam_stop();
    if (fold != 0 && blockDim.x != miriam_folded(count, fold)) miriam_stop();
    if (warps && (blockDim.x % 32 != 0 || count % 32 != 0)) miriam_stop();
    if (rows && x % 32 != 0) miriam_stop();
  }

  // Computed in the kernel. Divisions inside branches: a block of one row needs none.
  __device__ __forceinline__ uint3 at(unsigned thread) const {
    uint3 index;
    index.x = thread;
    index.y = index.z = 0;
    if (thread >= x) {
      index.y = thread / x;
      index.x = thread - index.y * x;
      if (index.y >= y) {
        index.z = index.y / y;
        index.y = index.y - index.z * y;
      }
    }
    return index;
  }
};

#endif  // __CUDACC__

#endif  // MIRIAM_BLOCK_H
