// For NVRTC: the driver's interface is the host's, a kernel needs nothing of it.
#pragma once
#include <cuda_runtime.h>
