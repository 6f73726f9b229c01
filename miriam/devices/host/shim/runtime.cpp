// The runtime, one per process: workers that run blocks, signals that become errors, memory.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "block.hpp"

#define MIRIAM_HOST_EXPORT extern "C" __attribute__((visibility("default")))

namespace miriam_host {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

struct Job {
  explicit Job(const Launch& l) : launch(l) {}

  const Launch& launch;
  std::vector<std::int64_t> order;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable done;
  int active = 0;
  std::size_t met = 0;
  std::condition_variable go;
  std::int64_t failed_block = -1;
  std::string error;

  void fail(std::int64_t block, std::string why) {
    const std::lock_guard lock(mutex);
    failed = true;
    if (failed_block >= 0 && failed_block < block) return;
    failed_block = block;
    error = std::move(why);
  }

  // Nobody starts before everybody has a block: then they race.
  void meet() {
    if (launch.schedule != Schedule::together) return;
    std::unique_lock lock(mutex);
    if (++met == order.size()) return go.notify_all();
    go.wait(lock, [this] { return met == order.size(); });
  }

  void work(Block& runner) {
    for (std::size_t i; !failed && (i = next++) < order.size();) {
      const std::int64_t block = order[i];
      meet();
      std::string why = runner.run(launch, block);
      if (!why.empty()) return fail(block, std::move(why));
      __atomic_fetch_add(&launch.runs[block], 1, __ATOMIC_RELAXED);
    }
  }
};

// While it lives, this thread has a stack of its own for signals, and what is not the kernel's
// fault is for the other threads of Python.
class SignalGuard {
 public:
  explicit SignalGuard(std::vector<char>& room) {
    room.resize(64 * 1024);
    stack_t stack{};
    stack.ss_sp = room.data();
    stack.ss_size = room.size();
    sigaltstack(&stack, &stack_before_);
    sigset_t others;
    sigfillset(&others);
    for (const int signal : kSignals) sigdelset(&others, signal);
    pthread_sigmask(SIG_BLOCK, &others, &mask_before_);
  }
  SignalGuard(const SignalGuard&) = delete;
  ~SignalGuard() {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    sigaltstack(&stack_before_, nullptr);
  }

 private:
  stack_t stack_before_{};
  sigset_t mask_before_;
};

// An OS thread that waits for jobs, with its own fibers and its own stack for signals.
class Worker {
 public:
  Worker() { std::thread(&Worker::loop, this).detach(); }

  void give(Job& job) {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    wake_.notify_one();
  }

 private:
  void loop() {
    std::vector<char> signal_stack;
    const SignalGuard guard(signal_stack);
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return job_ != nullptr; });
      Job& job = *std::exchange(job_, nullptr);
      lock.unlock();
      try {
        job.work(block_);
      } catch (const std::exception& error) {
        job.fail(0, std::string("kernel ") + job.launch.kernel + ": " + error.what());
      }
      const std::lock_guard end(job.mutex);
      if (--job.active == 0) job.done.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  Job* job_ = nullptr;
  Block block_;
};

// Idle workers; launches that overlap take different ones.
class Pool {
 public:
  std::vector<Worker*> take(std::size_t count) {
    const std::lock_guard lock(mutex_);
    if (owner_ != getpid()) idle_.clear();  // after a fork the threads are gone
    owner_ = getpid();
    while (idle_.size() < count) idle_.push_back(new Worker);
    std::vector<Worker*> taken(idle_.end() - static_cast<std::ptrdiff_t>(count), idle_.end());
    idle_.resize(idle_.size() - count);
    return taken;
  }

  void put_back(const std::vector<Worker*>& workers) {
    const std::lock_guard lock(mutex_);
    idle_.insert(idle_.end(), workers.begin(), workers.end());
  }

 private:
  std::mutex mutex_;
  std::vector<Worker*> idle_;
  pid_t owner_ = getpid();
};

// Never destroyed: at exit the workers still wait in it.
Pool& pool() {
  static Pool* const it = new Pool;
  return *it;
}

struct sigaction previous[std::size(kSignals)];
std::mutex signals_mutex;

void on_signal(int signal, siginfo_t* info, void*) {
  if (Block* const block = std::exchange(inside, nullptr)) block->leave(signal, info->si_addr);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == signal) sigaction(signal, &previous[i], nullptr);
  }
}

// Before each launch, because others (Python's faulthandler) install handlers as well.
void catch_signals() {
  const std::lock_guard lock(signals_mutex);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now {};
    sigaction(kSignals[i], nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal) continue;
    previous[i] = now;
    struct sigaction ours {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(kSignals[i], &ours, nullptr);
  }
}

}  // namespace
}  // namespace miriam_host

using namespace miriam_host;

namespace {

// On the calling thread, because waking a worker costs more than many a block.
void run_here(Job& job) {
  static thread_local Block block;
  static thread_local std::vector<char> signal_stack;
  const SignalGuard guard(signal_stack);
  job.work(block);
}

void run_job(Job& job) {
  const Launch& launch = job.launch;
  job.order.assign(launch.blocks, launch.blocks + launch.count);
  if (launch.schedule == Schedule::shuffled) Random(launch.seed, ~0ull).shuffle(job.order);
  const auto blocks = job.order.size();
  const auto wanted = launch.schedule == Schedule::together
                          ? blocks
                          : std::min(static_cast<std::size_t>(launch.workers), blocks);
  if (wanted == 1) return run_here(job);
  const auto workers = pool().take(wanted);
  job.active = static_cast<int>(wanted);
  for (Worker* worker : workers) worker->give(job);
  {
    std::unique_lock lock(job.mutex);
    job.done.wait(lock, [&] { return job.active == 0; });
  }
  pool().put_back(workers);
}

}  // namespace

// Runs the blocks; 0, or 1 with the reason in launch->error.
MIRIAM_HOST_EXPORT int miriam_host_launch(const Launch* launch) {
  catch_signals();
  Job job(*launch);
  try {
    run_job(job);
  } catch (const std::exception& error) {  // no threads or no memory, before any block ran
    job.fail(0, std::string("kernel ") + launch->kernel + ": " + error.what());
  }
  if (!job.failed) return 0;
  std::snprintf(launch->error, static_cast<std::size_t>(launch->error_bytes), "%s",
                job.error.c_str());
  return 1;
}

namespace {

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
std::size_t pages(std::size_t bytes) { return (bytes + page() - 1) / page() * page(); }

struct Segment {
  std::uintptr_t inside;
  std::uint64_t module, bytes;
  std::uintptr_t data, data_end;
};

int find_segment(dl_phdr_info* info, std::size_t, void* found) {
  auto& segment = *static_cast<Segment*>(found);
  bool here = false;
  std::uint64_t bytes = 0;
  std::uintptr_t data = 0, data_end = 0, constant_end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const auto start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && segment.inside - start < header.p_memsz) here = true;
    if (header.p_type == PT_TLS) bytes = header.p_memsz;
    if (header.p_type == PT_GNU_RELRO) constant_end = (start + header.p_memsz) / page() * page();
    if (header.p_type == PT_LOAD && header.p_flags & PF_W) {
      data = start;
      data_end = start + header.p_memsz;
    }
  }
  if (!here) return 0;
  segment.module = info->dlpi_tls_modid;
  segment.bytes = bytes;
  segment.data = std::max(data, constant_end);
  segment.data_end = std::max(segment.data, data_end);
  return 1;
}

}  // namespace

// Where the shared object around `code` keeps its thread-local (that is, shared) memory, and its
// variables.
MIRIAM_HOST_EXPORT void miriam_host_segment(const void* code, std::uint64_t* module,
                                            std::uint64_t* bytes, std::uint64_t* data,
                                            std::uint64_t* data_bytes) {
  Segment segment{};
  segment.inside = reinterpret_cast<std::uintptr_t>(code);
  dl_iterate_phdr(find_segment, &segment);
  *module = segment.module;
  *bytes = segment.bytes;
  *data = segment.data;
  *data_bytes = segment.data_end - segment.data;
}

// Memory whose first byte is aligned to 256, as cudaMalloc's, between `guard` bytes of pages that
// fault; null when there is none. `release` takes the same `bytes` and `guard`.
MIRIAM_HOST_EXPORT void* miriam_host_reserve(std::size_t bytes, std::size_t guard) {
  const std::size_t room = pages(bytes), apart = pages(guard);
  void* const base = mmap(nullptr, room + 2 * apart, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(base) + apart;
  if (mprotect(start, room, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, room + 2 * apart);
    return nullptr;
  }
  return start + (room - bytes) / 256 * 256;
}

MIRIAM_HOST_EXPORT void miriam_host_release(void* memory, std::size_t bytes, std::size_t guard) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory) / page() * page();
  munmap(reinterpret_cast<void*>(start - pages(guard)), pages(bytes) + 2 * pages(guard));
}

MIRIAM_HOST_EXPORT int miriam_host_read_only(void* memory, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory) / page() * page();
  return mprotect(reinterpret_cast<void*>(start), pages(bytes), PROT_READ);
}
