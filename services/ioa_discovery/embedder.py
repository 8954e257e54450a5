"""Embedding in a thread, in small batches, with a cache.

Models release Python's interpreter lock while they compute. A batch is small, so that a search that runs while a thousand cards
are indexed waits for one batch and not for all; and its texts are of similar length, because a batch is padded to its longest text.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from ioa.ports.embedder import Vector
from ioa_discovery.vector_store import VectorStore

BATCH_TEXTS = 8
CACHE_VECTORS = 8_192
_BATCH_CHARS = 1_000
"""Characters per batch: about 250 tokens, the maximum that the default model reads of a text."""
_STRETCH = 1.5
_SHORT_CHARS = 40


class Encoder(Protocol):
    """A loaded model."""

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        ...

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of unit length per text, in the order given."""
        ...


def load_encoder(model: str) -> Encoder:
    """Load a model: a folder with `model.onnx` and `tokenizer.json` by onnxruntime, any other by sentence-transformers.

    Raises:
        MissingExtraError: The library that runs it is not installed.
        InvalidInputError: It cannot be loaded.
    """
    folder = Path(model)
    if not model or (folder / "model.onnx").is_file():
        from ioa_discovery.onnx_encoder import OnnxEncoder

        return OnnxEncoder.of_folder(folder) if model else OnnxEncoder.of_package()
    from ioa_discovery.torch_encoder import SentenceTransformerEncoder

    return SentenceTransformerEncoder(model)


@asynccontextmanager
async def open_embedder(
    model: str = "", *, cache_vectors: int = CACHE_VECTORS, vectors_file: Path | None = None
) -> AsyncIterator[ThreadEmbedder]:
    """Load a model in a thread and embed with it until the block is left.

    Args:
        model: A folder with `model.onnx` and `tokenizer.json`, a sentence-transformers model by hub id or folder, or empty for the
            default model. A model on disk causes no download.
        cache_vectors: Maximum cached vectors; the least recently used are removed first.
        vectors_file: File for the vectors of cards; None stores none.

    Raises:
        InvalidInputError: The model cannot be loaded.
        MissingExtraError: The library that runs it is not installed.
    """
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix="embedder")
    store: VectorStore | None = None
    try:
        encoder = await loop.run_in_executor(thread, load_encoder, model)
        await loop.run_in_executor(thread, _trim_memory)
        if vectors_file is not None:
            store = await loop.run_in_executor(thread, VectorStore, vectors_file, encoder.model_id)
        yield ThreadEmbedder(encoder, thread, store, cache_vectors=cache_vectors)
    finally:
        if store is not None:
            thread.submit(store.close)
        thread.shutdown(wait=False)


class ThreadEmbedder:
    """An `Embedder` for needs, over an encoder that runs in one thread. Created by `open_embedder`."""

    def __init__(
        self, encoder: Encoder, thread: Executor, store: VectorStore | None = None, *, cache_vectors: int = CACHE_VECTORS
    ) -> None:
        self._encoder = encoder
        self._thread = thread
        self._store = store
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._cache_vectors = cache_vectors

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        return self._encoder.model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._encoder.dimension

    async def embed(self, texts: Sequence[str], *, keep: bool = False) -> Sequence[Vector]:
        """Return one vector per text, in the order given.

        Args:
            texts: The texts to embed.
            keep: Whether the vectors are stored in the file of vectors, and read from it.
        """
        found = {text: self._cache[text] for text in texts if text in self._cache}
        encode = partial(self._read_or_encode, self._store) if keep and self._store is not None else self._encode
        for batch in batches([text for text in texts if text not in found]):
            vectors = await asyncio.get_running_loop().run_in_executor(self._thread, encode, batch)
            found.update(zip(batch, vectors, strict=True))
        for text in texts:
            self._remember(text, found[text])
        return [found[text] for text in texts]

    def _encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        vectors = self._encoder.encode(texts)
        if len(texts) > 1:
            _trim_memory()
        return vectors

    def _read_or_encode(self, store: VectorStore, texts: Sequence[str]) -> Sequence[Vector]:
        found = store.read(texts)
        missing = [text for text in texts if text not in found]
        if missing:
            encoded = dict(zip(missing, self._encode(missing), strict=True))
            store.write(encoded)
            found |= encoded
        return [found[text] for text in texts]

    def _remember(self, text: str, vector: Vector) -> None:
        self._cache[text] = vector
        self._cache.move_to_end(text)
        if len(self._cache) > self._cache_vectors:
            self._cache.popitem(last=False)


class CardEmbedder:
    """An `Embedder` for cards: their vectors are stored on disk, so that a restart need not compute them again."""

    def __init__(self, embedder: ThreadEmbedder) -> None:
        self._embedder = embedder

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector per text, in the order given."""
        return await self._embedder.embed(texts, keep=True)


def _trim_memory() -> None:
    """Return unused memory to the system. After a model is loaded, or a batch is encoded, glibc keeps 100 MB of it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the distinct texts in batches of similar length, none of which takes long."""
    batch: list[str] = []
    for text in sorted(dict.fromkeys(texts), key=len):
        is_longer = batch and len(text) > max(_SHORT_CHARS, _STRETCH * len(batch[0]))
        if is_longer or (batch and (len(batch) + 1) * len(text) > _BATCH_CHARS) or len(batch) == BATCH_TEXTS:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch
