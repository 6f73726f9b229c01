// What a launch of an elastic kernel tells it. Plain CUDA C++: needs no other header.
//
// An elastic kernel runs logical blocks, those of the original kernel's grid, on physical blocks,
// those of the launch. Logical blocks are counted x first: block (x, y, z) of a grid (X, Y, Z) is
// number x + X * (y + Y * z). A grid may have up to 2^31 - 1 of them. Every form takes a
// MiriamLaunch before the original's arguments, a one-dimensional physical grid, and the original's
// threads per block and dynamic shared memory.
//
//   kernel__slice       launch with `count` blocks: runs numbers start to start + count - 1.
//   kernel__persistent  launch with any number of blocks: they share the same range.
//   kernel__yield       as persistent, but a block claims its next number from `counter` and leaves
//                       when `quota` says so. Launch it again with the same counter to go on: each
//                       number runs exactly once. All have run when *counter >= count and the
//                       launch has ended.
#ifndef MIRIAM_ELASTIC_H
#define MIRIAM_ELASTIC_H

struct MiriamLaunch {
  unsigned grid_x, grid_y, grid_z;  // the original kernel's grid
  unsigned start, count;            // the range of logical blocks to run
  // Only for the yield form, both in memory that the device can reach:
  unsigned* counter;               // numbers claimed so far; 0 before the first launch
  const volatile unsigned* quota;  // physical blocks that may go on, 0 stops all; null: no limit
};

#ifdef __CUDACC__

#ifndef MIRIAM_INLINE  // how a kernel's body is compiled; -DMIRIAM_INLINE=__noinline__ keeps it apart
#define MIRIAM_INLINE __forceinline__
#endif

static __device__ __forceinline__ dim3 miriam_grid(const MiriamLaunch& launch) {
  return dim3(launch.grid_x, launch.grid_y, launch.grid_z);
}

// The coordinates of logical block `number`.
static __device__ __forceinline__ uint3 miriam_block(const MiriamLaunch& launch, unsigned number) {
  uint3 block;
  block.x = number % launch.grid_x;
  block.y = number / launch.grid_x % launch.grid_y;
  block.z = number / launch.grid_x / launch.grid_y;
  return block;
}

static __device__ __forceinline__ bool miriam_leads() {
  return (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
}

// Called by one thread of a block: an index below `count`, or `count` when the block has to leave.
static __device__ __forceinline__ unsigned miriam_claim(const MiriamLaunch& launch) {
  if (launch.quota != nullptr && blockIdx.x >= *launch.quota) return launch.count;
  const unsigned next = atomicAdd(launch.counter, 1u);
  return next < launch.count ? next : launch.count;
}

// A barrier for kernels in which some threads are done while others still meet: true when any
// thread is not. The threads of a warp may be at different calls, hence not the aligned form.
static __device__ __forceinline__ bool miriam_meet(bool working) {
#ifdef __MIRIAM_HOST__
  static constexpr miriam_host::Site site{"miriam_meet", 0};
  return miriam_host::barrier(&site, working).nonzero != 0;
#else
  unsigned any;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; barrier.red.or.pred q, 0, p; selp.u32 %0, 1, 0, q; }"
      : "=r"(any)
      : "r"(static_cast<unsigned>(working))
      : "memory");
  return any != 0;
#endif
}

// For kernels that rely on the threads of one row making up whole warps.
static __device__ __forceinline__ void miriam_need_whole_warps() {
  if (blockDim.x % 32 != 0) __trap();
}

#endif  // __CUDACC__

#endif  // MIRIAM_ELASTIC_H
