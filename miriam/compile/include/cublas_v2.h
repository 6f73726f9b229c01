// cuBLAS's own header brings in these types; kernels use them without naming their headers.
#pragma once
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
