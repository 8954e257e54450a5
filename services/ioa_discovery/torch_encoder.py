"""Any sentence-transformers model as an encoder, for images that contain torch.

The model is a hub id or a folder. Only a hub id that is not on disk causes a download, and none with `HF_HUB_OFFLINE=1`.
"""

from __future__ import annotations

import hashlib
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.ports.embedder import Vector

if TYPE_CHECKING:
    import numpy as np


class SentenceTransformerEncoder:
    """An `Encoder` over sentence-transformers. Loading torch takes seconds: create it in the thread that runs it.

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
            try:
                self._model = SentenceTransformer(model, device="cpu", local_files_only=True)  # without a request to the hub
            except (OSError, ValueError):
                self._model = SentenceTransformer(model, device="cpu")
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"The embedding model {model!r} cannot be loaded: {error}",
                hint="Name a folder or a hub id that is on disk or that can be downloaded.",
            ) from error
        self.model_id = _model_id(model)
        self.dimension = len(self.encode("dimension"))

    def encode(self, text: str) -> Vector:
        """Return a vector of unit length. Text beyond the model's own limit is ignored."""
        vector: np.ndarray = self._model.encode(text, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True)
        return array("f", vector.astype("float32").tobytes())


def _model_id(model: str) -> str:
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for weights in sorted((*folder.glob("*.safetensors"), *folder.glob("*.bin"))):
        with weights.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return f"{folder.name}@{digest.hexdigest()[:12]}"
