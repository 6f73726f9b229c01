#include "block.hpp"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The runtime writes what kernels see as constants.
#define MIRIAM_HOST_TLS(name) \
  asm("miriam_host_" name) __attribute__((tls_model("initial-exec"), visibility("default")))
extern __thread uint3 threadIdx MIRIAM_HOST_TLS("thread");
extern __thread uint3 blockIdx MIRIAM_HOST_TLS("block");
extern __constinit thread_local dim3 blockDim MIRIAM_HOST_TLS("block_dim");
extern __constinit thread_local dim3 gridDim MIRIAM_HOST_TLS("grid_dim");
__thread uint3 threadIdx;
__thread uint3 blockIdx;
__constinit thread_local dim3 blockDim;
__constinit thread_local dim3 gridDim;

// The C library's allocator of thread-local memory: a module and an offset, by the ELF TLS ABI.
struct TlsIndex {
  unsigned long module, offset;
};
extern "C" void* __tls_get_addr(TlsIndex*);

namespace miriam_host {

thread_local Block* inside = nullptr;

Votes barrier(const Site* site, int predicate) { return inside->wait_barrier(site, predicate); }

std::uint64_t collective(const Site* site, Collective kind, unsigned mask, std::uint64_t value,
                         int source) {
  return inside->wait_collective(site, kind, mask, value, source);
}

void* dynamic_shared() { return inside->dynamic(); }

namespace {

uint3 unflatten(std::uint64_t index, const unsigned (&extent)[3]) {
  return {static_cast<unsigned>(index % extent[0]),
          static_cast<unsigned>(index / extent[0] % extent[1]),
          static_cast<unsigned>(index / extent[0] / extent[1])};
}

std::string show(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

void poison_static(const Launch& launch) {
  if (launch.shared_bytes == 0) return;
  TlsIndex start{launch.shared_module, 0};
  std::memset(__tls_get_addr(&start), kPoison, launch.shared_bytes);
}

}  // namespace

Block::Shared::~Shared() { std::free(data_); }

void Block::Shared::resize(std::size_t bytes) {
  if (bytes <= bytes_) return;
  std::free(data_);
  data_ = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  bytes_ = data_ ? bytes : 0;
  if (!data_) throw std::bad_alloc();
}

std::string Block::run(const Launch& launch, std::int64_t index) {
  begin(launch, index);
  Random random(launch.seed, static_cast<std::uint64_t>(index));
  inside = this;
  do {
    random.shuffle(order_);
    phase();
    // With fewer cores than blocks each would run far before the next one gets a turn.
    if (launch.schedule == Schedule::together && random.below(2)) sched_yield();
  } while (signal_ == 0 && release());
  inside = nullptr;
  if (signal_ != 0) complaint_ = fault();
  if (complaint_.empty()) return {};
  return std::string("kernel ") + launch.kernel + ", block " + show(blockIdx) + ": " + complaint_;
}

void Block::begin(const Launch& launch, std::int64_t index) {
  launch_ = &launch;
  blockIdx = unflatten(static_cast<std::uint64_t>(index), launch.grid);
  blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
  gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
  arrange(blockDim);
  const std::size_t count = threads_.size();
  dynamic_.resize(launch.dynamic_bytes);
  if (launch.dynamic_bytes) std::memset(dynamic_.data(), kPoison, launch.dynamic_bytes);
  poison_static(launch);
  order_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    threads_[i].state = State::unstarted;
    order_[i] = static_cast<std::uint32_t>(i);
  }
  stacks_.reset(count);
  live_ = count;
  at_barrier_ = 0;
  nonzero_ = 0;
  divergent_ = false;
  complaint_.clear();
  signal_ = 0;
}

// Gives each thread its index; most blocks have the shape of the one before.
void Block::arrange(dim3 shape) {
  if (shape.x == shape_.x && shape.y == shape_.y && shape.z == shape_.z) return;
  threads_.clear();
  threads_.resize(std::size_t{shape.x} * shape.y * shape.z);
  std::size_t i = 0;
  for (unsigned z = 0; z < shape.z; ++z) {
    for (unsigned y = 0; y < shape.y; ++y) {
      for (unsigned x = 0; x < shape.x; ++x) threads_[i++].index = {x, y, z};
    }
  }
  shape_ = shape;
}

// Runs every thread of `order_` until each one waits or has exited.
void Block::phase() {
  cursor_ = 0;
  if (!order_.empty()) resume_next(&scheduler_);
}

void Block::select(Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
}

void Block::resume_next(Context* from) {
  if (cursor_ == order_.size()) {
    switch_to(from, &scheduler_);
    return;
  }
  Thread& next = threads_[order_[cursor_++]];
  select(next);
  prefetch();
  if (next.state == State::unstarted) {
    const std::size_t stack = stacks_.take();
    prepare(&next.context, stacks_.top(stack), stacks_.usable(stack), fiber_main);
  }
  Context target = next.context;
  switch_to(from, &target);
}

// The stacks of a block are more than a first-level cache holds, and their order is random.
void Block::prefetch() const {
  if (cursor_ < order_.size()) fetch_early(threads_[order_[cursor_]].context);
}

// A fiber goes on with unstarted threads: only a thread that waits costs a switch and a stack.
void Block::fiber_main() {
  Block& block = *inside;
  for (;;) {
    block.current_->state = State::ready;
    block.launch_->entry(block.launch_->args);
    block.current_->state = State::done;
    --block.live_;
    if (block.cursor_ < block.order_.size()) {
      Thread& next = block.threads_[block.order_[block.cursor_]];
      if (next.state == State::unstarted) {
        ++block.cursor_;
        block.select(next);
        continue;
      }
    }
    Context dead;
    block.resume_next(&dead);
  }
}

void Block::park(State state, const Site* site) {
  Thread& self = *current_;
  self.state = state;
  self.site = site;
  resume_next(&self.context);
}

Votes Block::wait_barrier(const Site* site, int predicate) {
  if (at_barrier_++ == 0) barrier_ = site;
  divergent_ |= site != barrier_;
  nonzero_ += predicate;
  park(State::barrier, site);
  return votes_;
}

std::uint64_t Block::wait_collective(const Site* site, Collective kind, unsigned mask,
                                     std::uint64_t value, int source) {
  Thread& self = *current_;
  self.kind = kind;
  self.mask = mask;
  self.value = value;
  self.source = source;
  park(State::collective, site);
  return self.result;
}

// Decides who goes on. False: nobody, the block has ended or `complaint_` says why it can not.
bool Block::release() {
  if (live_ == 0) return false;
  if (at_barrier_ == live_) return release_barrier();
  order_.clear();
  for (const bool converging : {false, true}) {
    for (std::size_t first = 0; first < threads_.size(); first += 32) {
      while (complaint_.empty() && release_warp(first, converging)) {
      }
    }
    if (!complaint_.empty()) return false;
    if (!order_.empty()) return true;
  }
  complaint_ = stuck("deadlock");
  return false;
}

void Block::make_ready(Thread& thread) {
  thread.state = State::ready;
  order_.push_back(static_cast<std::uint32_t>(&thread - threads_.data()));
}

bool Block::release_barrier() {
  if (divergent_) {
    complaint_ = stuck("divergent barrier");
    return false;
  }
  // Where all of them ran last and none has exited, `order_` holds them already.
  if (order_.size() != threads_.size() || live_ != threads_.size()) {
    order_.clear();
    for (Thread& thread : threads_) {
      if (thread.state == State::barrier) make_ready(thread);
    }
  }
  votes_ = {nonzero_, static_cast<int>(at_barrier_)};
  nonzero_ = 0;
  at_barrier_ = 0;
  return true;
}

// Answers one complete group of lanes of the warp that starts at thread `first`, if there is one.
bool Block::release_warp(std::size_t first, bool converging) {
  const std::size_t end = std::min(first + 32, threads_.size());
  for (std::size_t i = first; i < end; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state != State::collective) continue;
    if ((thread.kind == Collective::converge) != converging) continue;
    if (!converging && !(thread.mask >> (i - first) & 1u)) {
      complaint_ = "thread " + show(thread.index) + " is not in the mask that it passes at " +
                   thread.site->file + ":" + std::to_string(thread.site->line);
      return false;
    }
    unsigned group = 0;
    if (complete(first, thread, group)) {
      answer(first, group);
      return true;
    }
  }
  return false;
}

// Whether all lanes that `like` waits for have come; lanes that have exited are not waited for.
bool Block::complete(std::size_t first, const Thread& like, unsigned& group) const {
  const std::size_t end = std::min(first + 32, threads_.size());
  for (std::size_t i = first; i < end; ++i) {
    const Thread& thread = threads_[i];
    const bool same = thread.state == State::collective && thread.kind == like.kind &&
                      thread.mask == like.mask;
    const unsigned bit = 1u << (i - first);
    if (like.kind == Collective::converge) {
      if (same && thread.site == like.site) group |= bit;
    } else if (like.mask & bit && thread.state != State::done) {
      if (!same) return false;
      group |= bit;
    }
  }
  return true;
}

void Block::answer(std::size_t first, unsigned group) {
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (group >> lane & 1u && threads_[first + lane].value) ballot |= 1u << lane;
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(group >> lane & 1u)) continue;
    Thread& thread = threads_[first + lane];
    if (thread.kind == Collective::shuffle) {
      // What a lane that does not take part would give is undefined: let it show.
      std::memset(&thread.result, kPoison, sizeof thread.result);
      const auto source = static_cast<unsigned>(thread.source) & 31u;
      if (group >> source & 1u) thread.result = threads_[first + source].value;
    } else {
      thread.result = thread.kind == Collective::converge ? group : ballot;
    }
    make_ready(thread);
  }
}

// `what`, and where each group of threads waits.
std::string Block::stuck(const char* what) const {
  struct Group {
    const Thread* first;
    std::size_t count;
  };
  std::vector<Group> groups;
  for (const Thread& thread : threads_) {
    if (thread.state == State::done) continue;
    Group* known = nullptr;
    for (Group& group : groups) {
      if (group.first->site == thread.site) known = &group;
    }
    if (known) {
      ++known->count;
    } else {
      groups.push_back({&thread, 1});
    }
  }
  std::string text = what;
  const char* joint = ": ";
  for (const Group& group : groups) {
    const Thread& thread = *group.first;
    text += joint + std::string("thread ") + show(thread.index);
    if (group.count > 1) text += " and " + std::to_string(group.count - 1) + " more";
    text += thread.state == State::barrier ? " at the barrier " : " at the warp collective ";
    text += std::string(thread.site->file) + ":" + std::to_string(thread.site->line);
    joint = ", ";
  }
  if (live_ < threads_.size()) {
    text += ", " + std::to_string(threads_.size() - live_) + " exited";
  }
  return text;
}

void Block::leave(int signal, const void* address) {
  signal_ = signal;
  address_ = address;
  Context dead;
  switch_to(&dead, &scheduler_);
  std::abort();
}

std::string Block::fault() const {
  char text[128];
  if ((signal_ == SIGSEGV || signal_ == SIGBUS) && stacks_.guards(address_)) {
    std::snprintf(text, sizeof text, "stack overflow, a thread has %zu KiB", Stacks::kBytes / 1024);
  } else if (signal_ == SIGSEGV || signal_ == SIGBUS) {
    std::snprintf(text, sizeof text, "invalid or misaligned memory access at %p", address_);
  } else if (signal_ == SIGFPE) {
    std::snprintf(text, sizeof text, "integer division by zero");
  } else {
    std::snprintf(text, sizeof text, "trap or failed assertion (%s)", strsignal(signal_));
  }
  return "thread " + show(current_->index) + ": " + text;
}

}  // namespace miriam_host
