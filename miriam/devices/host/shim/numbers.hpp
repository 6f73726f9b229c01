// Arithmetic that CUDA has and <math.h> lacks. Fast variants are as exact as the plain ones.
#pragma once

// The C library declares names like __expf itself, so that these can only be macros.
#define __expf(x) expf(x)
#define __exp10f(x) powf(10.0f, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define rsqrtf(x) miriam_host::rsqrt(x)

namespace miriam_host {
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
}  // namespace miriam_host

using std::isfinite;
using std::isinf;
using std::isnan;

static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return miriam_host::rsqrt(x); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

static inline int __float_as_int(float x) { return miriam_host::bit_cast<int>(x); }
static inline unsigned __float_as_uint(float x) { return miriam_host::bit_cast<unsigned>(x); }
static inline float __int_as_float(int x) { return miriam_host::bit_cast<float>(x); }
static inline float __uint_as_float(unsigned x) { return miriam_host::bit_cast<float>(x); }
static inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
static inline int __float2int_rz(float x) { return static_cast<int>(x); }
static inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
static inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
static inline float __int2float_rn(int x) { return static_cast<float>(x); }
static inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
static inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int bit = 0; bit < 32; ++bit) out |= (x >> bit & 1u) << (31 - bit);
  return out;
}

template <class T>
inline T __ldg(const T* p) {
  return *p;
}

#define MIRIAM_HOST_MIN_MAX(T)                                                         \
  static inline T min(T a, T b) { return b < a ? b : a; }                              \
  static inline T max(T a, T b) { return a < b ? b : a; }
MIRIAM_HOST_MIN_MAX(int)
MIRIAM_HOST_MIN_MAX(unsigned)
MIRIAM_HOST_MIN_MAX(long)
MIRIAM_HOST_MIN_MAX(unsigned long)
MIRIAM_HOST_MIN_MAX(long long)
MIRIAM_HOST_MIN_MAX(unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
