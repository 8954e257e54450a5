"""Fixtures."""

from tests.unit.runtime.plane import opened, plane

__all__ = ["opened", "plane"]
