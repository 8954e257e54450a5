"""The file of card vectors."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ioa.ports.embedder import Vector
from ioa_discovery.embedder import CardEmbedder, ThreadEmbedder
from ioa_discovery.vector_store import VectorStore


class LengthEncoder:
    """An encoder that records its texts. False in this: a vector is the text's length."""

    dimension = 1

    def __init__(self, model_id: str = "length") -> None:
        self.model_id = model_id
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the length of each text."""
        self.encoded.extend(texts)
        return [array("f", [len(text)]) for text in texts]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in a folder that does not exist."""
    return tmp_path / "vectors" / "vectors.sqlite"


async def encoded(
    file: Path, *calls: Sequence[str], model_id: str = "length", keep: bool = True, max_vectors: int = 99
) -> list[str]:
    """Embed texts as a new process does, check their vectors, and return the texts that the model encoded."""
    encoder = LengthEncoder(model_id)
    with ThreadPoolExecutor(1) as thread:
        store = thread.submit(VectorStore, file, model_id, max_vectors=max_vectors).result()
        embedder = ThreadEmbedder(encoder, thread, store, cache_vectors=0)
        for texts in calls:
            vectors = await (CardEmbedder(embedder) if keep else embedder).embed(texts)
            assert [list(vector) for vector in vectors] == [[float(len(text))] for text in texts]
        thread.submit(store.close).result()
    return encoder.encoded


async def test_stored_vector_is_read_after_a_restart(file: Path) -> None:
    """A text that was embedded before the file was closed is not embedded again."""
    assert [await encoded(file, ["one", "seven"]), await encoded(file, ["three", "seven", "one"])] == [["one", "seven"], ["three"]]


async def test_vectors_of_needs_are_not_stored(file: Path) -> None:
    """Only vectors of cards are stored."""
    assert [await encoded(file, ["one"], keep=False), await encoded(file, ["one"])] == [["one"], ["one"]]


async def test_vectors_of_another_model_are_not_read(file: Path) -> None:
    """Another model encodes the text again."""
    assert [await encoded(file, ["one"]), await encoded(file, ["one"], model_id="other")] == [["one"], ["one"]]


async def test_full_file_loses_the_oldest_vectors(file: Path) -> None:
    """Above the maximum, the vectors stored first are deleted."""
    await encoded(file, ["one"], ["three"], ["seven"], max_vectors=2)
    assert await encoded(file, ["seven", "three", "one"]) == ["one"]


async def test_damaged_file_is_replaced(file: Path) -> None:
    """A file that is no database is replaced by an empty one."""
    _write_garbage(file)
    assert await encoded(file, ["one"], ["one"]) == ["one"]


async def test_unreadable_pages_cost_no_vector(file: Path) -> None:
    """Texts are embedded although the file can be neither read nor written."""
    await encoded(file, [f"text {number}" for number in range(2_000)], max_vectors=5_000)
    _damage_pages(file)
    assert await encoded(file, ["text 7"], ["text 8"]) == ["text 7", "text 8"]


def _write_garbage(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1_000)


def _damage_pages(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4_096:] = b"\xff" * (len(content) - 4_096)
    file.write_bytes(bytes(content))


def test_two_processes_share_a_file(file: Path) -> None:
    """A vector that one process stored is read by another."""
    stores = [VectorStore(file, "length") for _ in range(2)]
    stores[0].write({"one": [1.0]})
    stores[1].write({"two": [2.0]})
    found = [{text: list(vector) for text, vector in store.read(["one", "two"]).items()} for store in stores]
    for store in stores:
        store.close()
    assert found == [{"one": [1.0], "two": [2.0]}] * 2
