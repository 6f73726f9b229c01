"""Miriam: a latency-critical DNN beside normal ones on one NVIDIA GPU."""

__version__ = "0.1.0"
