"""The engines of discovery in a test: an index in plain Python and an embedder that knows words, not meanings."""

from __future__ import annotations

from ioa.ports.agent_index import AgentIndex
from ioa.ports.embedder import Embedder
from ioa.testing.hashing_embedder import HashingEmbedder
from ioa.testing.memory_index import MemoryIndex

_DIMENSION = 512
"""Dimensions of a vector: enough that the words of some dozens of cards rarely share one."""


class WordEngines:
    """What discovery searches in, without a model. Texts are similar only if they share words."""

    def __init__(self) -> None:
        self.index: AgentIndex = MemoryIndex()
        self.card_embedder: Embedder = HashingEmbedder(dimension=_DIMENSION)
        self.embedder: Embedder = self.card_embedder
