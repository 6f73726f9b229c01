#pragma once

__constant__ float kTable[2] = {0.25f, 0.5f};

template <bool kDouble>
__device__ __forceinline__ float twice(float x) {
  return kDouble ? 2.0f * x : x;
}
