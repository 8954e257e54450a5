"""Any sentence-transformers model as an encoder, for images that carry torch.

The model is a hub id or a folder. The network is asked only for a hub id that is not on disk, and never with `HF_HUB_OFFLINE=1`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.ports.embedder import Vector
from ioa_discovery.vectors import components

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer


class SentenceTransformerEncoder:
    """An `Encoder` over sentence-transformers. Loading torch takes seconds: construct it in the thread that runs it.

    Args:
        model: Hub id, such as `sentence-transformers/all-MiniLM-L6-v2`, or a folder.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InvalidInputError: The model cannot be loaded.
    """

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError.of("The sentence-transformers embedder", "sentence-transformers") from error
        try:
            self._model = _loaded(SentenceTransformer, model)
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"The embedding model {model!r} cannot be loaded: {error}",
                hint="Name a folder or a hub id that is on disk or in reach.",
            ) from error
        self._model_id = _model_id(model)
        self._dimension = len(self.encode(["dimension"])[0])

    @property
    def model_id(self) -> str:
        """Name the model: the hub id, or the folder's name with the digest of its weights."""
        return self._model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._dimension

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Return how many tokens of each text are read; of a model without attention, which takes no time, one."""
        mask = self._model.tokenize(list(texts)).get("attention_mask")
        return [1] * len(texts) if mask is None else mask.sum(dim=1).tolist()

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of unit length per text. Text beyond the model's own limit is not read."""
        if not texts:
            return []
        vectors: np.ndarray = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return [components(vector.tobytes()) for vector in vectors.astype("float32")]


def _loaded(kind: type[SentenceTransformer], model: str) -> SentenceTransformer:
    """Load a model, from disk alone if it is there: else the hub would be asked, and waited for, at every start."""
    try:
        return kind(model, device="cpu", local_files_only=True)
    except (OSError, ValueError):
        return kind(model, device="cpu")


def _model_id(model: str) -> str:
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for weights in sorted((*folder.glob("*.safetensors"), *folder.glob("*.bin"))):
        with weights.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return f"{folder.name}@{digest.hexdigest()[:12]}"
