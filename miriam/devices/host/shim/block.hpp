// One logical block: a fiber per CUDA thread on one OS thread, resumed in a seeded random order.
#pragma once

#include <string>
#include <vector>

#include "abi.hpp"
#include "fiber.hpp"
#include "stacks.hpp"

namespace miriam_host {

// Which blocks run when: in a seeded random order, in the order given, or all of them at the same
// time, each on an OS thread of its own.
enum class Schedule : std::int32_t { shuffled, given, together };

// What Python hands over; the order of the fields is that of `Launch` in runtime.py.
struct Launch {
  Entry entry;
  void** args;
  const char* kernel;
  unsigned grid[3];
  unsigned block[3];
  std::uint64_t dynamic_bytes;
  std::uint64_t shared_module;  // the TLS module that holds the kernels' static shared memory
  std::uint64_t shared_bytes;
  std::uint64_t seed;
  const std::int64_t* blocks;
  std::int64_t count;
  std::int32_t* runs;
  std::int32_t workers;  // of no effect where the blocks run together
  Schedule schedule;
  std::int32_t error_bytes;
  char* error;
};

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed ^ mix(stream)) | 1) {}

  std::uint32_t below(std::uint32_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>((state_ >> 32) * bound >> 32);
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (auto left = static_cast<std::uint32_t>(items.size()); left > 1; --left) {
      std::swap(items[left - 1], items[below(left)]);
    }
  }

 private:
  // The finalizer of splitmix64.
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

class Block {
 public:
  // Runs block `index` to its end; what went wrong, or nothing.
  std::string run(const Launch& launch, std::int64_t index);

  Votes wait_barrier(const Site* site, int predicate);
  std::uint64_t wait_collective(const Site* site, Collective kind, unsigned mask,
                                std::uint64_t value, int source);
  void* dynamic() { return dynamic_.data(); }

  // Called by the signal handler, on its own stack: leaves the block for good.
  [[noreturn]] void leave(int signal, const void* address);

 private:
  enum class State : std::uint8_t { unstarted, ready, barrier, collective, done };

  struct Thread {
    Context context;
    const Site* site;
    uint3 index;
    State state;
    Collective kind;
    unsigned mask;
    int source;
    std::uint64_t value;
    std::uint64_t result;
  };

  // Dynamic shared memory, aligned as CUDA aligns it at least.
  class Shared {
   public:
    ~Shared();
    void resize(std::size_t bytes);
    void* data() { return data_; }

   private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
  };

  static void fiber_main();
  void begin(const Launch& launch, std::int64_t index);
  void arrange(dim3 shape);
  void select(Thread& thread);
  void resume_next(Context* from);
  void prefetch() const;
  void park(State state, const Site* site);
  void phase();
  bool release();
  bool release_barrier();
  bool release_warp(std::size_t first, bool converging);
  bool complete(std::size_t first, const Thread& like, unsigned& group) const;
  void answer(std::size_t first, unsigned group);
  void make_ready(Thread& thread);
  std::string stuck(const char* what) const;
  std::string fault() const;

  const Launch* launch_ = nullptr;
  dim3 shape_{0, 0, 0};
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> order_;
  std::size_t cursor_ = 0;
  std::size_t live_ = 0;
  std::size_t at_barrier_ = 0;
  const Site* barrier_ = nullptr;  // where the first one of them waits
  bool divergent_ = false;
  int nonzero_ = 0;
  Votes votes_{};
  Thread* current_ = nullptr;
  Context scheduler_{};
  Stacks stacks_;
  Shared dynamic_;
  std::string complaint_;
  int signal_ = 0;
  const void* address_ = nullptr;
};

// The block that this OS thread is inside of, or null.
extern thread_local Block* inside;

}  // namespace miriam_host
