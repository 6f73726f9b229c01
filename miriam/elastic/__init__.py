"""The generator: an original kernel becomes one whose logical blocks run where and when we like."""

from miriam.elastic.cuda import elasticize
from miriam.elastic.result import Elasticized, ElasticKernel, Verdict

__all__ = ["ElasticKernel", "Elasticized", "Verdict", "elasticize"]
