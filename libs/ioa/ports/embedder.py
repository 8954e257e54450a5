"""The port of embedding models: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Vector = Sequence[float]
"""Components of one dense vector of unit length, so that a dot product is a cosine."""


class Embedder(Protocol):
    """Embed texts without blocking the event loop."""

    @property
    def model_id(self) -> str:
        """Name the model and its weights: vectors are comparable if and only if their ids are equal."""

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of unit length per text, in the order given; the empty sequence for no texts."""
