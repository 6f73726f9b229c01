// CUDA's vector types and their make_ functions.
#pragma once

#define MIRIAM_HOST_VECTORS(T, n, a2, a4)                                              \
  struct n##1 {                                                                        \
    T x;                                                                               \
  };                                                                                   \
  struct alignas(a2) n##2 {                                                            \
    T x, y;                                                                            \
  };                                                                                   \
  struct alignas(a4) n##4 {                                                            \
    T x, y, z, w;                                                                      \
  };                                                                                   \
  static inline n##1 make_##n##1(T x) { return {x}; }                                  \
  static inline n##2 make_##n##2(T x, T y) { return {x, y}; }                          \
  static inline n##4 make_##n##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define MIRIAM_HOST_VECTOR3(T, n)                                                      \
  struct n##3 {                                                                        \
    T x, y, z;                                                                         \
  };                                                                                   \
  static inline n##3 make_##n##3(T x, T y, T z) { return {x, y, z}; }

MIRIAM_HOST_VECTORS(float, float, 8, 16)
MIRIAM_HOST_VECTORS(double, double, 16, 16)
MIRIAM_HOST_VECTORS(int, int, 8, 16)
MIRIAM_HOST_VECTORS(unsigned, uint, 8, 16)
MIRIAM_HOST_VECTORS(long long, longlong, 16, 16)
MIRIAM_HOST_VECTORS(unsigned long long, ulonglong, 16, 16)
MIRIAM_HOST_VECTORS(short, short, 4, 8)
MIRIAM_HOST_VECTORS(unsigned short, ushort, 4, 8)
MIRIAM_HOST_VECTORS(signed char, char, 2, 4)
MIRIAM_HOST_VECTORS(unsigned char, uchar, 2, 4)
MIRIAM_HOST_VECTOR3(float, float)
MIRIAM_HOST_VECTOR3(double, double)
MIRIAM_HOST_VECTOR3(int, int)
MIRIAM_HOST_VECTOR3(unsigned char, uchar)
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
