"""A process that embeds: `python -m ioa_discovery.embedding.encoder_process`, started by `open_embedder`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ioa_discovery.embedding.encoder_requests import EncodeTexts, LoadModel, ModelState
from ioa_discovery.embedding.vector_store import VectorStore
from ioa_discovery.vectors import packed_vector
from ioa_discovery.workers.worker_loop import serve

if TYPE_CHECKING:
    from ioa.ports.embedder import Vector

BATCH_TOKENS = 256
"""What the light model reads of a long text: 0.1 s on one core."""


class Encoder(Protocol):
    """A model that is loaded."""

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        ...

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Return how many tokens of each text are read."""
        ...

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of unit length per text, in the order given."""
        ...


def load_encoder(model: str) -> Encoder:
    """Load a model: a folder with `model.onnx` and `tokenizer.json` by onnxruntime, any other by sentence-transformers.

    Raises:
        MissingExtraError: What runs it is not installed.
        InvalidInputError: It cannot be loaded.
    """
    folder = Path(model)
    if not model or (folder / "model.onnx").is_file():
        from ioa_discovery.embedding.onnx_encoder import OnnxEncoder

        return OnnxEncoder.of_folder(folder) if model else OnnxEncoder.of_package()
    from ioa_discovery.embedding.torch_encoder import SentenceTransformerEncoder

    return SentenceTransformerEncoder(model)


class EncodingServant:
    """A loaded model that answers requests."""

    def __init__(self, encoder: Encoder, store: VectorStore | None = None) -> None:
        self._encoder = encoder
        self._store = store
        self.state = ModelState(encoder.model_id, encoder.dimension)

    def answer(self, request: object) -> object:
        """Embed texts."""
        match request:
            case EncodeTexts(texts, keep):
                store = self._store if keep else None
                known = store.read(texts) if store is not None else {}
                missing = self._first([text for text in texts if text not in known])
                new = dict(zip(missing, map(packed_vector, self._encoder.encode(missing)), strict=True))
                if store is not None and new:
                    store.write(new)
                if len(missing) > 1:
                    _give_back_memory()
                found = known | new
                return [found[text] for text in takewhile(found.__contains__, texts)]
        raise TypeError(request)

    def _first(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the first of some texts, as many as are read like one long text when all are padded to the longest of them."""
        longest = 0
        for number, tokens in enumerate(self._encoder.count_tokens(texts) if len(texts) > 1 else ()):
            longest = max(longest, tokens)
            if number and (number + 1) * longest > BATCH_TOKENS:
                return texts[:number]
        return texts

    def close(self) -> None:
        """Close the file of vectors."""
        if self._store is not None:
            self._store.close()


def open_model(opening: object) -> EncodingServant:
    """Load what the first message says."""
    match opening:
        case LoadModel(model, vectors_file):
            encoder = load_encoder(model)
            _give_back_memory()
            return EncodingServant(encoder, VectorStore(Path(vectors_file), encoder.model_id) if vectors_file else None)
    raise TypeError(opening)


def _give_back_memory() -> None:
    """Return to the system what loading or a batch took for a while, 30 MB and more, which glibc keeps by itself. It takes 1 ms."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


if __name__ == "__main__":
    serve(open_model)
