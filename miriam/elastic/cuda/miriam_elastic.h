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
  // All optional, 0 when left out. Several quotas: `more_quotas` further words, the i-th of them at
  // quota[i * quota_stride]; the smallest counts.
  unsigned more_quotas, quota_stride;
  // The SMs on which blocks may go on, a bit for each: SM i is bit i % 32 of word i / 32. Further
  // sets lie as the quotas do, and all of them count. Null: everywhere.
  const volatile unsigned* sms;
  // Where MIRIAM_COUNT_RUNS is defined: how often each number ran, one word each. Null: not counted.
  unsigned* runs;
  // A word that is set when a block has to leave. Where it is set and no quota limits any more, the
  // other blocks leave too: the next launch, with another such word, is a full one. Null: they stay.
  unsigned* shrunk;
  // Only for the block forms, which run a logical block on fewer threads: the original's block.
  unsigned block_x, block_y, block_z;
};

#ifdef __CUDACC__

#ifndef MIRIAM_INLINE  // how a kernel's body is compiled; -DMIRIAM_INLINE=__noinline__ keeps it apart
#define MIRIAM_INLINE __forceinline__
#endif

// The persistent and yield forms of a kernel with __launch_bounds__(threads). A compiler spends fewer
// registers on a body inside a loop, which cost up to 20 % where few blocks share an SM (measured,
// sm_90); -DMIRIAM_RESIDENT_BLOCKS=<blocks of the original that one SM holds> gives them back.
#ifdef MIRIAM_RESIDENT_BLOCKS
#define MIRIAM_LOOP_BOUNDS(threads) __launch_bounds__(threads, MIRIAM_RESIDENT_BLOCKS)
#else
#define MIRIAM_LOOP_BOUNDS(threads) __launch_bounds__(threads)
#endif

static __device__ __forceinline__ dim3 miriam_grid(const MiriamLaunch& launch) {
  return dim3(launch.grid_x, launch.grid_y, launch.grid_z);
}

static __device__ __forceinline__ bool miriam_leads() {
  return (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
}

// The coordinates of logical block `number`, which runs next.
static __device__ __forceinline__ uint3 miriam_block(const MiriamLaunch& launch, unsigned number) {
#ifdef MIRIAM_COUNT_RUNS
  if (launch.runs != nullptr && miriam_leads()) atomicAdd(launch.runs + number, 1u);
#endif
  uint3 block;
  block.x = number;
  block.y = block.z = 0;
  // Divisions inside branches: a grid of one row needs none, and fewer registers hold them.
  if (number >= launch.grid_x) {
    block.y = number / launch.grid_x;
    block.x = number - block.y * launch.grid_x;
    if (block.y >= launch.grid_y) {
      block.z = block.y / launch.grid_y;
      block.y = block.y - block.z * launch.grid_y;
    }
  }
  return block;
}

// The smallest of the quotas, 0 on an SM that is not in all sets.
static __device__ __forceinline__ unsigned miriam_quota(const MiriamLaunch& launch) {
  unsigned least = launch.quota != nullptr ? *launch.quota : 0xffffffffu;
  for (unsigned i = 1; i <= launch.more_quotas; ++i) {
    const unsigned quota = launch.quota[i * launch.quota_stride];
    least = quota < least ? quota : least;
  }
#ifndef __MIRIAM_HOST__
  if (launch.sms != nullptr) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    unsigned set = launch.sms[sm / 32];
    for (unsigned i = 1; i <= launch.more_quotas; ++i) {
      set &= launch.sms[i * launch.quota_stride + sm / 32];
    }
    if ((set >> sm % 32 & 1u) == 0) return 0;
  }
#endif
  return least;
}

// Called by one thread of a block: an index below `count`, or `count` when the block has to leave.
static __device__ __forceinline__ unsigned miriam_claim(const MiriamLaunch& launch) {
  const unsigned quota = miriam_quota(launch);
  if (blockIdx.x >= quota) {
    if (launch.shrunk != nullptr) *launch.shrunk = 1;
    return launch.count;
  }
  if (launch.shrunk != nullptr && quota == 0xffffffffu) {
    if (*static_cast<volatile unsigned*>(launch.shrunk) != 0) return launch.count;
  }
  const unsigned next = atomicAdd(launch.counter, 1u);
  return next < launch.count ? next : launch.count;
}

// Kernels in which some threads are done while others still meet at barriers. In the original the
// former have left and nobody waits for them; here they join in until all are done. The threads of
// a warp may then be at different calls, hence not the aligned form of the barrier.
static __device__ __forceinline__ void miriam_sync() {
#ifdef __MIRIAM_HOST__
  __syncthreads();
#else
  asm volatile("barrier.sync 0;" ::: "memory");
#endif
}

// In place of __syncthreads(): between the two, nobody becomes done.
static __device__ __forceinline__ void miriam_meet() {
  miriam_sync();
  miriam_sync();
}

// At the end of a logical block: `done` counts the threads that ever came here, `all` will have.
static __device__ __forceinline__ void miriam_finish(unsigned* done, unsigned all) {
  atomicAdd(done, 1u);
  unsigned seen;
  do {
    miriam_sync();
    seen = *static_cast<volatile unsigned*>(done);
    miriam_sync();
  } while (seen != all);
}

static __device__ __forceinline__ unsigned miriam_threads() {
  return blockDim.x * blockDim.y * blockDim.z;
}

// For kernels that rely on the threads of one row making up whole warps.
static __device__ __forceinline__ void miriam_need_whole_warps() {
#ifdef __MIRIAM_HOST__
  if (blockDim.x % 32 != 0) __builtin_trap();
#else
  if (blockDim.x % 32 != 0) __trap();
#endif
}

#endif  // __CUDACC__

#endif  // MIRIAM_ELASTIC_H
