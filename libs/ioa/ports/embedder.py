"""The port of embedding models: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import starmap
from operator import mul
from typing import Protocol

Vector = Sequence[float]
"""Components of one dense vector of unit length, so that a dot product is a cosine."""


class Embedder(Protocol):
    """Embed texts without blocking the event loop."""

    @property
    def model_id(self) -> str:
        """Name the model and its weights: vectors are comparable if and only if their ids are equal."""
        ...

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of unit length per text, in the order given; the empty sequence for no texts."""
        ...


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors of unit length, -1 to 1."""
    products: Iterable[float] = starmap(mul, zip(one, other, strict=True))
    return max(-1.0, min(1.0, sum(products)))
