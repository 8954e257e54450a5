"""An embedder without a model: texts are near each other when they share words, and only then."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from math import sqrt

from ioa.ports.embedder import Vector


class HashingEmbedder:
    """An `Embedder` for unit tests. False in this: each word is a direction by its hash, so synonyms are strangers.

    Args:
        dimension: Length of the vectors; the shorter, the more words collide.
        model_id: What it calls itself, so that a test can change models.

    Attributes:
        embedded: Every text it was asked to embed, in order.
    """

    def __init__(self, *, dimension: int = 64, model_id: str = "hashing") -> None:
        self.embedded: list[str] = []
        self._dimension = dimension
        self._model_id = model_id

    @property
    def model_id(self) -> str:
        """Name the model."""
        return self._model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the normalised count of hashed words of each text."""
        self.embedded.extend(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        counts = [0.0] * self._dimension
        for word in _words(text) or [""]:
            counts[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % self._dimension] += 1.0
        length = sqrt(sum(count * count for count in counts))
        return [count / length for count in counts]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
