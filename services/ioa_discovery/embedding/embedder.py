"""Embedding off the event loop: in processes of their own, in small batches of similar texts, with a memory.

Small batches, so that a need that is searched while a thousand cards are being indexed waits for one batch and not for all; and
of texts of similar length, since a batch is padded to its longest text: a card's description and four short examples take three
times as long together as one by one. How long that is only the process knows, which counts tokens: of signs each is one. So it
answers the first texts of a batch, and is asked again for the others. What is searched for goes before what is kept, as cards are,
and of each search one batch waits at a time: however many needs another has, one that goes on beside it waits for a batch of it.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol, cast

from ioa.cancellation import TaskGroup
from ioa.errors import UnavailableError
from ioa.ports.embedder import Vector
from ioa_discovery.embedding.encoder_requests import EncodeTexts, LoadModel, ModelState
from ioa_discovery.embedding.vector_store import vector_key
from ioa_discovery.vectors import components
from ioa_discovery.workers.worker_process import open_worker

BATCH_TEXTS = 8
CACHE_VECTORS = 8_192
_BATCH_CHARS = 1_000
"""Of plain words about as many tokens as the process reads at a time."""
_STRETCH = 1.5
_SHORT_CHARS = 40
_MODULE = "ioa_discovery.embedding.encoder_process"


class Encoding(Protocol):
    """A process that embeds, as `ChildWorker` runs it."""

    @property
    def state(self) -> object:
        """A `ModelState`."""
        ...

    @property
    def backlog(self) -> int:
        """How many requests it has yet to answer."""
        ...

    async def ask(self, request: object, *, urgent: bool = False) -> object:
        """Answer `EncodeTexts`."""
        ...


@asynccontextmanager
async def open_embedder(
    model: str = "", *, processes: int = 1, cache_vectors: int = CACHE_VECTORS, vectors_file: Path | None = None
) -> AsyncIterator[ProcessEmbedder]:
    """Load a model in processes of its own and embed with it; end them on leaving.

    Args:
        model: A folder with `model.onnx` and `tokenizer.json`, a sentence-transformers model by hub id or folder, or the light
            model that comes with discovery if it is empty. Nothing is downloaded that is on disk.
        processes: How many; each holds the model and computes on one core.
        cache_vectors: How many vectors are remembered, least recently used forgotten first.
        vectors_file: Where the vectors are kept of what is embedded to be kept.

    Raises:
        InvalidInputError: The model cannot be loaded.
        MissingExtraError: What runs it is not installed.
    """
    async with AsyncExitStack() as stack:
        opening = LoadModel(model, str(vectors_file or ""))
        workers = [await stack.enter_async_context(open_worker(_MODULE, opening)) for _ in range(processes)]
        yield ProcessEmbedder(workers, cache_vectors=cache_vectors)


class ProcessEmbedder:
    """An `Embedder` over processes that all run the same model. Made by `open_embedder`, which ends them."""

    def __init__(self, workers: Sequence[Encoding], *, cache_vectors: int = CACHE_VECTORS) -> None:
        self._workers = workers
        self._model = cast(ModelState, workers[0].state)
        self._cache: OrderedDict[bytes, array[float]] = OrderedDict()
        self._cache_vectors = cache_vectors

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        return self._model.model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._model.dimension

    async def embed(self, texts: Sequence[str], *, keep: bool = False) -> Sequence[Vector]:
        """Return one vector per text, in the order given. Texts seen lately, or twice in one call, cost nothing.

        Args:
            texts: What to embed.
            keep: Whether the vectors shall outlive the process.

        Raises:
            UnavailableError: The process died over them; another one is being started.
        """
        keys = [vector_key(self.model_id, text) for text in texts]
        found = {key: self._cache[key] for key in keys if key in self._cache}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        found.update(await self._encode(missing, keep=keep))
        for key in keys:
            self._remember(key, found[key])
        return [found[key] for key in keys]

    async def aclose(self) -> None:
        """Do nothing: the processes end when the block of `open_embedder` is left."""

    async def _encode(self, missing: Mapping[bytes, str], *, keep: bool) -> dict[bytes, array[float]]:
        done: dict[bytes, array[float]] = {}

        async def encode(batch: Mapping[bytes, str]) -> None:
            left = list(batch.items())
            while left:
                request = EncodeTexts([text for _, text in left], keep)
                vectors = cast(Sequence[bytes], await self._idlest().ask(request, urgent=not keep))
                done.update((key, components(vector)) for (key, _), vector in zip(left, vectors, strict=False))
                left = left[len(vectors) :]

        if not keep:
            for batch in batches(missing):  # so that others, who go first as well, wait for one batch of this call
                await encode(batch)
            return done
        try:
            async with TaskGroup() as group:
                for batch in batches(missing):
                    group.create_task(encode(batch))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return done

    def _idlest(self) -> Encoding:
        worker = min(self._workers, key=lambda worker: worker.backlog)
        if worker.state != self._model:
            raise UnavailableError("The embedding model on disk has changed.", hint="Restart discovery.")
        return worker

    def _remember(self, key: bytes, vector: array[float]) -> None:
        self._cache[key] = vector
        self._cache.move_to_end(key)
        if len(self._cache) > self._cache_vectors:
            self._cache.popitem(last=False)


class KeepingEmbedder:
    """An `Embedder` that keeps what it embeds on disk: cards are embedded again when an index is lost, needs are not."""

    def __init__(self, embedder: ProcessEmbedder) -> None:
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

    async def aclose(self) -> None:
        """Do nothing: the processes end when the block of `open_embedder` is left."""


def batches(texts: Mapping[bytes, str]) -> Iterator[dict[bytes, str]]:
    """Group texts so that those of a batch are of similar length, and none takes long."""
    batch: dict[bytes, str] = {}
    longest = 0
    for key, text in sorted(texts.items(), key=lambda item: len(item[1])):
        length = len(text)
        fits = length <= max(_SHORT_CHARS, _STRETCH * longest) and (len(batch) + 1) * length <= _BATCH_CHARS
        if batch and (not fits or len(batch) == BATCH_TEXTS):
            yield batch
            batch, longest = {}, 0
        batch[key] = text
        longest = longest or length
    if batch:
        yield batch
