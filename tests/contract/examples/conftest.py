"""Fixtures that run an example agent's function on files."""

from __future__ import annotations

from tests.unit.examples.conftest import data, run

__all__ = ["data", "run"]
