"""Embedding in a thread, one text at a time, with a cache.

Models release Python's interpreter lock while they compute. A need waits for at most one text of a card, however many cards are
being indexed.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from ioa.ports.embedder import Vector

CACHE_VECTORS = 8_192


class Encoder(Protocol):
    """A loaded model. `model_id` names it and its weights; `dimension` is the length of its vectors."""

    model_id: str
    dimension: int

    def encode(self, text: str) -> Vector:
        """Return a vector of unit length."""
        ...


def load_encoder(model: str) -> Encoder:
    """Load a model: a folder with `model.onnx` and `tokenizer.json` by onnxruntime, any other by sentence-transformers."""
    folder = Path(model)
    if not model or (folder / "model.onnx").is_file():
        from ioa_discovery.onnx_encoder import OnnxEncoder

        if not model:
            return OnnxEncoder.of_package()
        return OnnxEncoder(folder / "model.onnx", folder / "tokenizer.json", name=folder.name)
    from ioa_discovery.torch_encoder import SentenceTransformerEncoder

    return SentenceTransformerEncoder(model)


@asynccontextmanager
async def open_embedder(model: str = "", *, cache_vectors: int = CACHE_VECTORS) -> AsyncIterator[ThreadEmbedder]:
    """Load a model in a thread and embed with it until the block is left.

    Args:
        model: A folder with `model.onnx` and `tokenizer.json`, a sentence-transformers model by hub id or folder, or empty for the
            default model. A model on disk causes no download.
        cache_vectors: Maximum cached vectors; the least recently used are removed first.

    Raises:
        InvalidInputError: The model cannot be loaded.
        MissingExtraError: The library that runs it is not installed.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
    try:
        encoder = await asyncio.get_running_loop().run_in_executor(thread, load_encoder, model)
        _trim_memory()
        yield ThreadEmbedder(encoder, thread, cache_vectors=cache_vectors)
    finally:
        thread.shutdown(wait=False)


class ThreadEmbedder:
    """An `Embedder` over an encoder that runs in one thread."""

    def __init__(self, encoder: Encoder, thread: Executor, *, cache_vectors: int = CACHE_VECTORS) -> None:
        self.model_id, self.dimension = encoder.model_id, encoder.dimension
        self._encode = lru_cache(maxsize=cache_vectors)(encoder.encode)
        self._thread = thread

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector per text, in the order given."""
        loop = asyncio.get_running_loop()
        return [await loop.run_in_executor(self._thread, self._encode, text) for text in texts]


def _trim_memory() -> None:
    """Return unused memory to the system: after a model is loaded, glibc keeps 100 MB of it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
