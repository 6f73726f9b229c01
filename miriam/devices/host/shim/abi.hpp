// What kernels and the runtime say to each other. A kernel's shared object leaves these names open;
// the runtime, one per process, defines them.
#pragma once

#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

#pragma GCC visibility push(default)
namespace miriam_host {

// A place in the user's source; each wait has one, so that its address tells two waits apart.
struct Site {
  const char* file;
  int line;
};

enum class Collective : std::uint8_t { sync, shuffle, vote, converge };

struct Votes {
  int nonzero;
  int arrived;
};

// Waits for every thread of the block that has not exited; counts the predicates.
Votes barrier(const Site* site, int predicate);

// Waits for every thread of `mask` that has not exited. Returns the value of lane `source` for a
// shuffle, the ballot for a vote, the mask of the lanes that came together for converge.
std::uint64_t collective(const Site* site, Collective kind, unsigned mask, std::uint64_t value,
                         int source);

// The block's dynamic shared memory.
void* dynamic_shared();

// A reference to `memory` that the compiler does not know to be thread-local.
template <class T>
inline T& keep(T& memory) {
  T* address = &memory;
  asm("" : "+r"(address));
  return *address;
}

// Shared memory starts with this in every byte, so that reads before writes show.
constexpr unsigned char kPoison = 0xA5;

using Entry = void (*)(void** args);

}  // namespace miriam_host
#pragma GCC visibility pop
