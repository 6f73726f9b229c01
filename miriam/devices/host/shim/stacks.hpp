// Small fiber stacks, made once per worker and used again, each above a page that faults.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <vector>

namespace miriam_host {

class Stacks {
 public:
  static constexpr std::size_t kBytes = 64 * 1024;

  ~Stacks() {
    for (char* stack : all_) munmap(stack - guard_, guard_ + kBytes);
  }

  // All stacks are free again, and there are at least `count`.
  void reset(std::size_t count) {
    while (all_.size() < count) all_.push_back(make());
    taken_ = 0;
  }

  // A free stack; within a block none is given back.
  std::size_t take() { return taken_++; }

  // Tops differ in their low bits: equal ones would put all hot frames into the same cache sets.
  char* top(std::size_t stack) const { return all_[stack] + kBytes - stack % 16 * 256; }
  std::size_t usable(std::size_t stack) const { return kBytes - stack % 16 * 256; }

  bool guards(const void* address) const {
    const char* const at = static_cast<const char*>(address);
    for (const char* stack : all_) {
      if (at < stack && at >= stack - guard_) return true;
    }
    return false;
  }

 private:
  char* make() const {
    void* const base = mmap(nullptr, guard_ + kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || mprotect(base, guard_, PROT_NONE) != 0) throw std::bad_alloc();
    return static_cast<char*>(base) + guard_;
  }

  const std::size_t guard_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<char*> all_;
  std::size_t taken_ = 0;
};

}  // namespace miriam_host
