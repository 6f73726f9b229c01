// Barriers and warp collectives: each one parks the thread's fiber until the others have come.
#pragma once

#define MIRIAM_HOST_SITE (::miriam_host::Site{__FILE__, __LINE__, __COUNTER__})
#define MIRIAM_HOST_CALLER ::miriam_host::Site{__builtin_FILE(), __builtin_LINE(), 0}

#define __syncthreads() static_cast<void>(::miriam_host::barrier(MIRIAM_HOST_SITE, 0))
#define __syncthreads_count(p) (::miriam_host::barrier(MIRIAM_HOST_SITE, (p) != 0).nonzero)
#define __syncthreads_or(p) (::miriam_host::barrier(MIRIAM_HOST_SITE, (p) != 0).nonzero != 0)
#define __syncthreads_and(p) (::miriam_host::barrier(MIRIAM_HOST_SITE, (p) == 0).nonzero == 0)

namespace miriam_host {

inline int lane() {
  const unsigned flat = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return static_cast<int>(flat % 32u);
}

template <class T>
inline T shuffle(unsigned mask, T value, int source, Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  static_assert(std::is_arithmetic_v<T>, "a shuffle moves a number");
  const auto bits = bit_cast<Bits<T>>(value);
  const auto got = collective(Collective::shuffle, mask, bits, source, site);
  return bit_cast<T>(static_cast<Bits<T>>(got));
}

inline unsigned vote(unsigned mask, bool value, Site site) {
  return static_cast<unsigned>(collective(Collective::vote, mask, value, 0, site));
}

}  // namespace miriam_host

static inline void __syncwarp(unsigned mask = 0xffffffffu,
                              miriam_host::Site site = MIRIAM_HOST_CALLER) {
  miriam_host::collective(miriam_host::Collective::sync, mask, 0, 0, site);
}
static inline unsigned __ballot_sync(unsigned mask, int p,
                                     miriam_host::Site site = MIRIAM_HOST_CALLER) {
  return miriam_host::vote(mask, p != 0, site);
}
static inline int __any_sync(unsigned mask, int p, miriam_host::Site site = MIRIAM_HOST_CALLER) {
  return miriam_host::vote(mask, p != 0, site) != 0u;
}
static inline int __all_sync(unsigned mask, int p, miriam_host::Site site = MIRIAM_HOST_CALLER) {
  return miriam_host::vote(mask, p == 0, site) == 0u;
}
static inline unsigned __activemask(miriam_host::Site site = MIRIAM_HOST_CALLER) {
  using miriam_host::Collective;
  return static_cast<unsigned>(miriam_host::collective(Collective::converge, 0, 0, 0, site));
}

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                     miriam_host::Site site = MIRIAM_HOST_CALLER) {
  const int first = miriam_host::lane() & -width;
  return miriam_host::shuffle(mask, value, first + (source & (width - 1)), site);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        miriam_host::Site site = MIRIAM_HOST_CALLER) {
  const int lane = miriam_host::lane(), source = lane - static_cast<int>(delta);
  return miriam_host::shuffle(mask, value, source < (lane & -width) ? lane : source, site);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          miriam_host::Site site = MIRIAM_HOST_CALLER) {
  const int lane = miriam_host::lane(), source = lane + static_cast<int>(delta);
  return miriam_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, site);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                         miriam_host::Site site = MIRIAM_HOST_CALLER) {
  const int lane = miriam_host::lane(), source = lane ^ bits;
  return miriam_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, site);
}
