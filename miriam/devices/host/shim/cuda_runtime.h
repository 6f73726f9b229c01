// So that `#include <cuda_runtime.h>` finds the shim.
#pragma once
#include "cuda.hpp"
