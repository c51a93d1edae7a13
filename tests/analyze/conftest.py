"""Properties are checked without a bound on wall-clock time: machines are shared."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
