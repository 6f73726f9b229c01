"""The `tango` variants: the six networks with the launches of the public Tango suite.

Grids, blocks, element types and loops as in the CUDA sources of Tango (Karki et al., "Tango: A
Deep Neural Network Benchmark Suite for Various Accelerators", ISPASS 2019; read in the fork
hnts03/gpu_bench_cuda_11.3, folder Tango/GPU). Numbers only: there is no source, so that these
programs run in the simulator alone. Tango's own flaws are kept (single-block kernels, one-thread
blocks, strided loads, fp64 in CifarNet, SqueezeNet and LSTM), as they are what is compared.
"""

from miriam.models.tango.networks import TANGO_NAMES, load_tango

__all__ = ["TANGO_NAMES", "load_tango"]
