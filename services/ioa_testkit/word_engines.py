"""The engines of discovery in a test: the exact index, and an embedder that knows words, not meanings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import sqrt

from ioa.ports.embedder import Vector
from ioa_discovery.answering import Engines

_DIMENSION = 512
"""Dimensions of a vector: enough that the words of some dozens of cards rarely share one."""


class HashingEmbedder:
    """An `Embedder` without a model: each word is a direction by its hash, so texts are similar only if they share words.

    Attributes:
        embedded: All embedded texts, in order.
    """

    def __init__(self, *, dimension: int = 64, model_id: str = "hashing") -> None:
        self.embedded: list[str] = []
        self.dimension, self.model_id = dimension, model_id

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the normalised count of hashed words of each text."""
        self.embedded.extend(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        counts = [0.0] * self.dimension
        for word in re.findall(r"\w+", text.lower()) or [""]:
            counts[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % self.dimension] += 1.0
        length = sqrt(sum(count * count for count in counts))
        return [count / length for count in counts]


@asynccontextmanager
async def open_word_engines() -> AsyncIterator[Engines]:
    """Open engines without a model. Texts are similar only if they share words."""
    # Imported when a system starts: without the extra `server`, the missing nats-server is reported first.
    from ioa_discovery.exact_index import ExactIndex

    embedder = HashingEmbedder(dimension=_DIMENSION)
    index = ExactIndex(_DIMENSION)
    yield Engines(index, embedder, embedder)
