"""Measurements behind docs/results; a file is a command, run with ``python -m``."""
