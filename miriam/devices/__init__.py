"""Devices: one contract; a simulated GPU, the host's CPU, a CUDA GPU."""
