"""Embedding off the event loop: one thread, small batches, a cache.

A thread and not a process: onnxruntime, the tokenizers and torch release the GIL while they compute, so a thread keeps the
event loop as free as a process would, without a second copy of the model and without pickling vectors. One thread, because
a second inference at the same time only takes the cores from the first. Batches are small, so that a need that is searched
while a thousand cards are being indexed waits for one batch and not for all.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Protocol

from ioa.ports.embedder import Vector

BATCH_TEXTS = 8
CACHE_VECTORS = 8_192


class Encoder(Protocol):
    """A model that is loaded: embeds in the thread that calls it."""

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


@asynccontextmanager
async def open_embedder(load: Callable[[], Encoder], *, cache_vectors: int = CACHE_VECTORS) -> AsyncIterator[ThreadEmbedder]:
    """Load a model in the thread that will run it and embed with it; stop the thread on leaving.

    Args:
        load: Builds the encoder, such as `OnnxEncoder.of_package`; its errors come out of the `async with`.
        cache_vectors: How many vectors are remembered, least recently used forgotten first.
    """
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
    try:
        encoder = await asyncio.get_running_loop().run_in_executor(thread, load)
    except BaseException:
        thread.shutdown(wait=False, cancel_futures=True)
        raise
    embedder = ThreadEmbedder(encoder, thread, cache_vectors=cache_vectors)
    try:
        yield embedder
    finally:
        await embedder.aclose()


class ThreadEmbedder:
    """An `Embedder` over an encoder and the one thread that runs it. Made by `open_embedder`."""

    def __init__(self, encoder: Encoder, thread: ThreadPoolExecutor, *, cache_vectors: int = CACHE_VECTORS) -> None:
        self._encoder = encoder
        self._thread = thread
        self._cache: OrderedDict[bytes, Vector] = OrderedDict()
        self._cache_vectors = cache_vectors

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        return self._encoder.model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._encoder.dimension

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector per text, in the order given. Texts seen lately, or twice in one call, cost nothing."""
        keys = [self._key(text) for text in texts]
        found = {key: self._cache[key] for key in keys if key in self._cache}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        found.update(await self._encode(missing))
        for key in keys:
            self._remember(key, found[key])
        return [found[key] for key in keys]

    async def aclose(self) -> None:
        """Stop the thread after the batch it is at. Idempotent."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def _encode(self, missing: dict[bytes, str]) -> dict[bytes, Vector]:
        """Encode in batches of similar length, since a batch is padded to its longest text."""
        loop = asyncio.get_running_loop()
        waiting = sorted(missing.items(), key=lambda item: len(item[1]))
        done: dict[bytes, Vector] = {}
        for start in range(0, len(waiting), BATCH_TEXTS):
            batch = waiting[start : start + BATCH_TEXTS]
            vectors = await loop.run_in_executor(self._thread, self._encoder.encode, [text for _, text in batch])
            done.update(zip((key for key, _ in batch), vectors, strict=True))
        return done

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self._encoder.model_id}\0{text}".encode(), digest_size=16).digest()

    def _remember(self, key: bytes, vector: Vector) -> None:
        self._cache[key] = vector
        self._cache.move_to_end(key)
        if len(self._cache) > self._cache_vectors:
            self._cache.popitem(last=False)
