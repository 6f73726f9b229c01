// Barriers and warp collectives: each one parks the thread's fiber until the others have come.
#pragma once

// Macros, because a site is where the user's text stands, in templates too.
#define MIRIAM_HOST_SITE                                                   \
  __extension__({                                                          \
    static constexpr ::miriam_host::Site miriam_site{__FILE__, __LINE__};  \
    &miriam_site;                                                          \
  })

#define __syncthreads() static_cast<void>(::miriam_host::barrier(MIRIAM_HOST_SITE, 0))
#define __syncthreads_count(...) (::miriam_host::barrier(MIRIAM_HOST_SITE, !!(__VA_ARGS__)).nonzero)
#define __syncthreads_or(...) static_cast<int>(__syncthreads_count(__VA_ARGS__) != 0)
#define __syncthreads_and(...) static_cast<int>(__syncthreads_count(!(__VA_ARGS__)) == 0)

namespace miriam_host {

inline int lane() {
  const unsigned flat = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return static_cast<int>(flat % 32u);
}

template <class T>
inline T shuffle(const Site* site, unsigned mask, T value, int source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  static_assert(std::is_arithmetic_v<T>, "a shuffle moves a number");
  const auto bits = bit_cast<Bits<T>>(value);
  const auto got = collective(site, Collective::shuffle, mask, bits, source);
  return bit_cast<T>(static_cast<Bits<T>>(got));
}

inline unsigned ballot(const Site* site, unsigned mask, bool value) {
  return static_cast<unsigned>(collective(site, Collective::vote, mask, value, 0));
}

inline int any(const Site* site, unsigned mask, bool value) {
  return ballot(site, mask, value) != 0u;
}

inline int all(const Site* site, unsigned mask, bool value) {
  return ballot(site, mask, !value) == 0u;
}

inline void sync(const Site* site, unsigned mask = 0xffffffffu) {
  collective(site, Collective::sync, mask, 0, 0);
}

inline unsigned converge(const Site* site) {
  return static_cast<unsigned>(collective(site, Collective::converge, 0, 0, 0));
}

template <class T>
inline T shfl(const Site* site, unsigned mask, T value, int source, int width = 32) {
  return shuffle(site, mask, value, (lane() & -width) + (source & (width - 1)));
}

template <class T>
inline T shfl_up(const Site* site, unsigned mask, T value, unsigned delta, int width = 32) {
  const int self = lane(), source = self - static_cast<int>(delta);
  return shuffle(site, mask, value, source < (self & -width) ? self : source);
}

template <class T>
inline T shfl_down(const Site* site, unsigned mask, T value, unsigned delta, int width = 32) {
  const int self = lane(), source = self + static_cast<int>(delta);
  return shuffle(site, mask, value, source > (self | (width - 1)) ? self : source);
}

template <class T>
inline T shfl_xor(const Site* site, unsigned mask, T value, int bits, int width = 32) {
  const int self = lane(), source = self ^ bits;
  return shuffle(site, mask, value, source > (self | (width - 1)) ? self : source);
}

}  // namespace miriam_host

#define __syncwarp(...) ::miriam_host::sync(MIRIAM_HOST_SITE __VA_OPT__(, ) __VA_ARGS__)
#define __activemask() ::miriam_host::converge(MIRIAM_HOST_SITE)
#define __ballot_sync(...) ::miriam_host::ballot(MIRIAM_HOST_SITE, __VA_ARGS__)
#define __any_sync(...) ::miriam_host::any(MIRIAM_HOST_SITE, __VA_ARGS__)
#define __all_sync(...) ::miriam_host::all(MIRIAM_HOST_SITE, __VA_ARGS__)
#define __shfl_sync(...) ::miriam_host::shfl(MIRIAM_HOST_SITE, __VA_ARGS__)
#define __shfl_up_sync(...) ::miriam_host::shfl_up(MIRIAM_HOST_SITE, __VA_ARGS__)
#define __shfl_down_sync(...) ::miriam_host::shfl_down(MIRIAM_HOST_SITE, __VA_ARGS__)
#define __shfl_xor_sync(...) ::miriam_host::shfl_xor(MIRIAM_HOST_SITE, __VA_ARGS__)
