"""The file of card vectors."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ioa.ports.embedder import Vector
from ioa_discovery.vector_store import StoredEmbedder


class LengthEncoder:
    """An encoder and embedder that records its texts. False in this: a vector is the text's length."""

    dimension = 1

    def __init__(self, model_id: str = "length") -> None:
        self.model_id = model_id
        self.encoded: list[str] = []

    def encode(self, text: str) -> Vector:
        """Return the length of a text."""
        self.encoded.append(text)
        return array("f", [len(text)])

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the length of each text."""
        return [self.encode(text) for text in texts]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in a folder that does not exist."""
    return tmp_path / "vectors" / "vectors.sqlite"


async def encoded(file: Path, *calls: Sequence[str], model_id: str = "length", max_vectors: int = 99) -> list[str]:
    """Embed texts as a new process does, check their vectors, and return the texts that the model encoded."""
    encoder = LengthEncoder(model_id)
    with closing(StoredEmbedder(encoder, file, max_vectors=max_vectors)) as embedder:
        for texts in calls:
            vectors = await embedder.embed(texts)
            assert [list(vector) for vector in vectors] == [[float(len(text))] for text in texts]
    return encoder.encoded


async def test_stored_vector_is_read_after_a_restart(file: Path) -> None:
    """A text that was embedded before the file was closed is not embedded again."""
    assert [await encoded(file, ["one", "seven"]), await encoded(file, ["three", "seven", "one"])] == [["one", "seven"], ["three"]]


async def test_vectors_of_another_model_are_not_read(file: Path) -> None:
    """Another model encodes the text again."""
    assert [await encoded(file, ["one"]), await encoded(file, ["one"], model_id="other")] == [["one"], ["one"]]


async def test_full_file_loses_the_oldest_vectors(file: Path) -> None:
    """Above the maximum, the vectors stored first are deleted."""
    await encoded(file, ["one"], ["three"], ["seven"], max_vectors=2)
    assert await encoded(file, ["seven", "three", "one"]) == ["one"]


async def test_damaged_file_costs_no_vector(file: Path) -> None:
    """With a file that is no database, texts are embedded each time."""
    _write_garbage(file)
    assert await encoded(file, ["one"], ["one"]) == ["one", "one"]


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


async def test_two_processes_share_a_file(file: Path) -> None:
    """A vector that one process stored is read by another."""
    encoders = [LengthEncoder(), LengthEncoder()]
    with closing(StoredEmbedder(encoders[0], file)) as one, closing(StoredEmbedder(encoders[1], file)) as other:
        await one.embed(["one"])
        await other.embed(["one", "seven"])
        await one.embed(["seven"])
    assert [encoder.encoded for encoder in encoders] == [["one"], ["seven"]]
