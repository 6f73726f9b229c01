// What the block forms need besides miriam_elastic.h: several logical threads on a physical one.
//
// Launch a block form with a one-dimensional block of P threads and the logical block's shape in
// MiriamLaunch. Logical thread t, counted x first, runs on physical thread t % P: where both sizes
// are multiples of 32, the lanes of a logical warp are those of a physical one.
//
//   kernel__block_slice<0>            a kernel without barriers, on any P and any logical block;
//                                     with N in place of 0 its launch bounds are the original's / N
//   kernel__block_slice<N, X, Y, Z>   one with barriers: N logical threads of a block of this shape
//                                     on each of P = X * Y * Z / N threads, rounded up
//
// and so persistent and yield. A form traps where it is not launched as it was compiled.
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

// Coordinates of logical thread `thread` of a block of `x` times `y` times more: computed.
static __device__ __forceinline__ uint3 miriam_unflat(unsigned thread, unsigned x, unsigned y) {
  uint3 index;
  index.x = thread;
  index.y = index.z = 0;
  // Divisions inside branches: a block of one row needs none.
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

// What a launch has to fit: `warps` where logical warps have to be physical ones, `rows` where the
// kernel takes the threads of a row for whole warps.
static __device__ __forceinline__ void miriam_check(const MiriamLaunch& launch, unsigned count,
                                                    bool warps, bool rows) {
  if (count == 0 || blockDim.y != 1 || blockDim.z != 1) miriam_stop();
  if (warps && (blockDim.x % 32 != 0 || count % 32 != 0)) miriam_stop();
  if (rows && launch.block_x % 32 != 0) miriam_stop();
}

// The logical threads of a block that is only known at launch.
struct MiriamThreads {
  unsigned x, y, count;

  __device__ __forceinline__ MiriamThreads(const MiriamLaunch& launch, bool warps, bool rows)
      : x(launch.block_x), y(launch.block_y), count(x * y * launch.block_z) {
    miriam_check(launch, count, warps, rows);
  }
  __device__ __forceinline__ unsigned thread(unsigned number) const { return number; }
  __device__ __forceinline__ uint3 at(unsigned number) const { return miriam_unflat(number, x, y); }
};

// `Fold` logical threads of a block of this shape on each physical one.
template <int Fold, unsigned X, unsigned Y, unsigned Z>
struct MiriamFolded {
  static constexpr int fold = Fold;
  static constexpr unsigned count = X * Y * Z, physical = miriam_folded(count, Fold);
  static constexpr bool all = true;  // nobody returns before the others

  __device__ __forceinline__ MiriamFolded(const MiriamLaunch& launch, bool warps, bool rows) {
    miriam_check(launch, count, warps, rows);
    if (launch.block_x != X || launch.block_y != Y || launch.block_z != Z) miriam_stop();
    if (blockDim.x != physical) miriam_stop();
  }
  // Whether this physical thread has an n-th logical one.
  __device__ __forceinline__ bool runs(int n) const {
    return (n + 1) * physical <= count || threadIdx.x + n * physical < count;
  }
  // The number of the n-th logical thread.
  __device__ __forceinline__ unsigned thread(int n) const {
    unsigned thread = threadIdx.x + n * physical;
#ifndef __MIRIAM_HOST__
    // What follows from it is cheaper to compute in each region than to keep for all of them.
    asm volatile("" : "+r"(thread));
    __builtin_assume(thread < count);
#endif
    return thread;
  }
  __device__ __forceinline__ uint3 at(int n) const {
    if (Y * Z != 1) return miriam_unflat(thread(n), X, Y);
    uint3 index;
    index.x = thread(n);
    index.y = index.z = 0;
    return index;
  }
};

// The same with the other index function: coordinates from a table in shared memory, which the
// physical block fills once, before its first logical block.
template <class Threads>
struct MiriamTabled : Threads {
  const unsigned* table;

  __device__ __forceinline__ MiriamTabled(const MiriamLaunch& launch, bool warps, bool rows,
                                          unsigned* filled)
      : Threads(launch, warps, rows), table(filled) {
    for (unsigned i = threadIdx.x; i < Threads::count; i += blockDim.x) {
      const uint3 index = miriam_unflat(i, launch.block_x, launch.block_y);
      filled[i] = index.x | index.y << 10 | index.z << 20;
    }
    __syncthreads();
  }
  template <class Number>
  __device__ __forceinline__ uint3 at(Number n) const {
    const unsigned packed = table[Threads::thread(n)];
    uint3 index;
    index.x = packed & 1023;
    index.y = packed >> 10 & 1023;
    index.z = packed >> 20;
    return index;
  }
};

// Runs `work` for each logical thread of this physical one.
template <class Threads, class Work>
__device__ __forceinline__ void miriam_each(const Threads& threads, const Work& work) {
#pragma unroll
  for (int n = 0; n < Threads::fold; ++n) {
    if (threads.runs(n)) work(n, threads.at(n));
  }
}

// The same of a kernel in which a logical thread may return before the others do.
template <class Threads>
struct MiriamLiving : Threads {
  static constexpr bool all = false;
  bool is[Threads::fold];

  __device__ __forceinline__ explicit MiriamLiving(const Threads& threads) : Threads(threads) {
#pragma unroll
    for (int n = 0; n < Threads::fold; ++n) is[n] = Threads::runs(n);
  }
  __device__ __forceinline__ bool runs(int n) const { return is[n]; }
  __device__ __forceinline__ void end(int n) { is[n] = false; }
  // Whether any of the block is left: what it agrees on means nothing once all have returned.
  __device__ __forceinline__ bool any() const {
    bool some = false;
#pragma unroll
    for (int n = 0; n < Threads::fold; ++n) some = some || is[n];
    return __syncthreads_or(some) != 0;
  }
};

// A variable whose type its value tells, for each logical thread.
template <class Value, int Fold>
struct MiriamValues {
  Value value[Fold];
  __device__ __forceinline__ Value& operator[](int n) { return value[n]; }
};

template <class Threads, class Work>
__device__ __forceinline__ auto miriam_values(const Threads& threads, const Work& work) {
  MiriamValues<decltype(work(0, uint3())), Threads::fold> values;
  miriam_each(threads, [&](int n, uint3 index) { values.value[n] = work(n, index); });
  return values;
}

template <class Value, int Count>
__device__ __forceinline__ void miriam_copy(Value (&to)[Count], const Value (&from)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) to[i] = from[i];
}
template <class Value, int Rows, int Count>
__device__ __forceinline__ void miriam_copy(Value (&to)[Rows][Count],
                                            const Value (&from)[Rows][Count]) {
#pragma unroll
  for (int i = 0; i < Rows; ++i) miriam_copy(to[i], from[i]);
}

// What the logical threads agree on. Where some have returned, this physical thread may have none
// of those that still do.
template <class Threads, class Work>
__device__ __forceinline__ auto miriam_agreed(const Threads& threads, const Work& work) {
  decltype(work(0, uint3())) agreed{};
  miriam_each(threads, [&](int n, uint3 index) {
    const auto mine = work(n, index);
    agreed = n == 0 || !Threads::all ? mine : agreed;
  });
  if constexpr (!Threads::all) return __syncthreads_or(agreed ? 1 : 0) != 0;
  if constexpr (Threads::all) return agreed;
}

// The voting barriers, over logical threads.
template <class Threads, class Work>
__device__ __forceinline__ int miriam_or(const Threads& threads, const Work& work) {
  bool some = false;
  miriam_each(threads, [&](int n, uint3 index) { some = work(n, index) || some; });
  return __syncthreads_or(some ? 1 : 0);
}

template <class Threads, class Work>
__device__ __forceinline__ int miriam_and(const Threads& threads, const Work& work) {
  bool all = true;
  miriam_each(threads, [&](int n, uint3 index) { all = work(n, index) && all; });
  return __syncthreads_and(all ? 1 : 0);
}

template <class Threads, class Work>
__device__ __forceinline__ int miriam_count(const Threads& threads, const Work& work) {
  bool yes[Threads::fold] = {};
  miriam_each(threads, [&](int n, uint3 index) { yes[n] = work(n, index); });
  int count = 0;
#pragma unroll
  for (int n = 0; n < Threads::fold; ++n) count += __syncthreads_count(yes[n] ? 1 : 0);
  return count;
}

#endif  // __CUDACC__

#endif  // MIRIAM_BLOCK_H
