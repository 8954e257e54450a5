"""Vectors as bytes, which is how they travel between processes and are stored."""

from __future__ import annotations

from array import array
from collections.abc import Sequence


def packed_vector(vector: Sequence[float]) -> bytes:
    """Return the bytes of a vector's components."""
    return array("f", vector).tobytes()


def components(packed: bytes) -> array[float]:
    """Return a vector's components."""
    vector = array("f")
    vector.frombytes(packed)
    return vector
