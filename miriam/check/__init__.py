"""Are they equal? Elastic forms of a user's kernels run against their originals on the CPU."""

from miriam.check.compare import verify, verify_elasticized
from miriam.check.judge import FormVerdict, KernelVerdict
from miriam.check.launchfile import KernelLaunch, read_launches

__all__ = [
    "FormVerdict",
    "KernelLaunch",
    "KernelVerdict",
    "read_launches",
    "verify",
    "verify_elasticized",
]
