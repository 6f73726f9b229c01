"""placeholder"""

from miriam.bench.metrics import BenchResult


def page(result: BenchResult) -> bytes:
    """x"""
    return b""
