"""Vectors outlive the process that embedded them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ioa.ports.embedder import Vector
from ioa.testing.hashing_embedder import HashingEmbedder
from ioa_discovery.vector_store import open_stored_embedder


def rounded(vectors: Sequence[Vector]) -> list[list[float]]:
    """Return vectors as they are to six digits: they are stored in 32 bits."""
    return [[round(value, 6) for value in vector] for vector in vectors]


def spoil(file: Path, content: bytes) -> None:
    """Write something else into the file, and take away what lies beside it."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    for part in ("-wal", "-shm"):
        file.with_name(file.name + part).unlink(missing_ok=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in a folder that is not there yet."""
    return tmp_path / "index" / "vectors.sqlite"


async def test_a_text_is_embedded_once_for_all_time(file: Path) -> None:
    """What was embedded before the file was closed comes out of it, each in its place, and only the rest is embedded."""
    first, second = HashingEmbedder(), HashingEmbedder()
    async with open_stored_embedder(first, file) as embedder:
        await embedder.embed(["one", "two", "one"])
    async with open_stored_embedder(second, file) as embedder:
        vectors = await embedder.embed(["three", "two", "one"])
    expected = await HashingEmbedder().embed(["three", "two", "one"])
    assert (first.embedded, second.embedded, rounded(vectors)) == (["one", "two"], ["three"], rounded(expected))


async def test_vectors_of_another_model_are_not_taken(file: Path) -> None:
    """A text is embedded again by another model."""
    other = HashingEmbedder(model_id="other")
    async with open_stored_embedder(HashingEmbedder(), file) as embedder:
        await embedder.embed(["one"])
    async with open_stored_embedder(other, file) as embedder:
        await embedder.embed(["one"])
    assert other.embedded == ["one"]


async def test_the_oldest_are_forgotten(file: Path) -> None:
    """The file stays as large as it may be; what was embedded first goes first."""
    model = HashingEmbedder()
    async with open_stored_embedder(model, file, max_vectors=2) as embedder:
        for text in ("one", "two", "three"):
            await embedder.embed([text])
        model.embedded.clear()
        await embedder.embed(["three", "two", "one"])
    assert model.embedded == ["one"]


async def test_a_damaged_file_is_begun_anew(file: Path) -> None:
    """A file that is none costs only that everything is embedded again."""
    spoil(file, b"no database" * 1_000)
    model = HashingEmbedder()
    async with open_stored_embedder(model, file) as embedder:
        await embedder.embed(["one"])
        await embedder.embed(["one"])
    assert model.embedded == ["one"]


async def test_a_file_that_fails_is_done_without(file: Path) -> None:
    """Texts are embedded although nothing can be read or written any more."""
    model = HashingEmbedder()
    async with open_stored_embedder(model, file) as embedder:
        await embedder.embed(["one"])
        spoil(file, b"\xff" * 50_000)
        vectors = await embedder.embed([f"text {number}" for number in range(2_000)])
    assert (len(vectors), len(model.embedded)) == (2_000, 2_001)
