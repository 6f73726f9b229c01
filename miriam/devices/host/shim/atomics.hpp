// Atomics on real OS threads: blocks on different workers race as they do on a GPU.
#pragma once

namespace miriam_host {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;

template <class To, class From>
inline To bit_cast(From value) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// Replaces *p by change(*p) in one step; what *p was.
template <class T, class F>
inline T atomic_update(T* p, F change) {
  auto* const bits = reinterpret_cast<Bits<T>*>(p);
  auto seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(bits, &seen, bit_cast<Bits<T>>(change(bit_cast<T>(seen))),
                                      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return bit_cast<T>(seen);
}

}  // namespace miriam_host

#define MIRIAM_HOST_FETCH(name, T, op)                                                 \
  static inline T name(T* p, T v) { return __atomic_##op(p, v, __ATOMIC_RELAXED); }
#define MIRIAM_HOST_UPDATE(name, T, expression)                                        \
  static inline T name(T* p, T v) {                                                    \
    return miriam_host::atomic_update(p, [v](T old) -> T { return expression; });      \
  }
#define MIRIAM_HOST_ATOMIC_INTEGER(T)                                                  \
  MIRIAM_HOST_FETCH(atomicAdd, T, fetch_add)                                           \
  MIRIAM_HOST_FETCH(atomicAnd, T, fetch_and)                                           \
  MIRIAM_HOST_FETCH(atomicOr, T, fetch_or)                                             \
  MIRIAM_HOST_FETCH(atomicXor, T, fetch_xor)                                           \
  MIRIAM_HOST_FETCH(atomicExch, T, exchange_n)                                         \
  MIRIAM_HOST_UPDATE(atomicMax, T, old < v ? v : old)                                  \
  MIRIAM_HOST_UPDATE(atomicMin, T, v < old ? v : old)                                  \
  static inline T atomicCAS(T* p, T compare, T v) {                                    \
    __atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return compare;                                                                    \
  }

MIRIAM_HOST_ATOMIC_INTEGER(int)
MIRIAM_HOST_ATOMIC_INTEGER(unsigned)
MIRIAM_HOST_ATOMIC_INTEGER(unsigned long long)
MIRIAM_HOST_FETCH(atomicSub, int, fetch_sub)
MIRIAM_HOST_FETCH(atomicSub, unsigned, fetch_sub)
MIRIAM_HOST_UPDATE(atomicInc, unsigned, old >= v ? 0u : old + 1u)
MIRIAM_HOST_UPDATE(atomicDec, unsigned, old == 0u || old > v ? v : old - 1u)
MIRIAM_HOST_UPDATE(atomicAdd, float, old + v)
MIRIAM_HOST_UPDATE(atomicAdd, double, old + v)
MIRIAM_HOST_UPDATE(atomicExch, float, (static_cast<void>(old), v))

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
