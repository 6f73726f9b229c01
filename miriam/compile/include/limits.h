// For NVRTC, which has no standard headers.
#pragma once
#include <cuda/std/climits>
