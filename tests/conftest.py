"""Settings for all tests: the same examples on every run and on every machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("miriam", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("miriam")
