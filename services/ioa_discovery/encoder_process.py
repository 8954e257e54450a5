"""A process that embeds: `python -m ioa_discovery.encoder_process`, started by `open_embedder`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ioa_discovery.encoder_requests import EncodeTexts, LoadModel, ModelState
from ioa_discovery.shard_requests import packed_vector
from ioa_discovery.worker_loop import serve

if TYPE_CHECKING:
    from ioa.ports.embedder import Vector


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
        from ioa_discovery.onnx_encoder import OnnxEncoder

        return OnnxEncoder.of_folder(folder) if model else OnnxEncoder.of_package()
    from ioa_discovery.torch_encoder import SentenceTransformerEncoder

    return SentenceTransformerEncoder(model)


class EncodingServant:
    """A loaded model that answers requests."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.state = ModelState(encoder.model_id, encoder.dimension)

    def answer(self, request: object) -> object:
        """Embed texts."""
        match request:
            case EncodeTexts(texts):
                return [packed_vector(vector) for vector in self._encoder.encode(texts)]
        raise TypeError(request)

    def close(self) -> None:
        """Do nothing: what it holds goes with the process."""


def open_model(opening: object) -> EncodingServant:
    """Load what the first message says."""
    match opening:
        case LoadModel(model):
            return EncodingServant(load_encoder(model))
    raise TypeError(opening)


if __name__ == "__main__":
    serve(open_model)
