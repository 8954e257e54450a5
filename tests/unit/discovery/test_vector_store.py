"""Vectors outlive the process that embedded them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ioa.ports.embedder import Vector
from ioa_discovery.embedding.encoder_process import EncodingServant
from ioa_discovery.embedding.encoder_requests import EncodeTexts
from ioa_discovery.embedding.vector_store import VectorStore
from ioa_discovery.vectors import packed_vector


class LengthEncoder:
    """An encoder that remembers what it was asked. False in this: a vector is the text's length."""

    dimension = 1

    def __init__(self, model_id: str = "length") -> None:
        self.model_id = model_id
        self.asked: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Read nothing."""
        return [0] * len(texts)

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the length of each text."""
        self.asked.extend(texts)
        return [[float(len(text))] for text in texts]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in a folder that is not there yet."""
    return tmp_path / "index" / "vectors.sqlite"


def encode(file: Path, *calls: Sequence[str], model_id: str = "length", keep: bool = True, max_vectors: int = 99) -> list[str]:
    """Embed in a process of its own, as it were; check the vectors and return what the model was asked."""
    encoder = LengthEncoder(model_id)
    servant = EncodingServant(encoder, VectorStore(file, model_id, max_vectors=max_vectors))
    for texts in calls:
        assert [packed_vector([float(len(text))]) for text in texts] == servant.answer(EncodeTexts(texts, keep))
    servant.close()
    return encoder.asked


def test_a_text_is_embedded_once_for_all_time(file: Path) -> None:
    """What was embedded before the file was closed comes out of it, each in its place, and only the rest is embedded."""
    assert [encode(file, ["one", "seven"]), encode(file, ["three", "seven", "one"])] == [["one", "seven"], ["three"]]


def test_what_is_not_to_be_kept_is_not(file: Path) -> None:
    """The vectors of needs, of which there is no end, are not stored."""
    assert [encode(file, ["one"], keep=False), encode(file, ["one"])] == [["one"], ["one"]]


def test_vectors_of_another_model_are_not_taken(file: Path) -> None:
    """A text is embedded again by another model."""
    assert [encode(file, ["one"]), encode(file, ["one"], model_id="other")] == [["one"], ["one"]]


def test_the_oldest_are_forgotten(file: Path) -> None:
    """The file stays as large as it may be; what was embedded first goes first."""
    encode(file, ["one"], ["three"], ["seven"], max_vectors=2)
    assert encode(file, ["seven", "three", "one"]) == ["one"]


def test_a_damaged_file_is_begun_anew(file: Path) -> None:
    """A file that is none costs only that everything is embedded again."""
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1_000)
    assert encode(file, ["one"], ["one"]) == ["one"]


def test_a_file_that_fails_is_done_without(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Texts are embedded although nothing can be read or written, and it is said."""
    encode(file, [f"text {number}" for number in range(2_000)])
    content = bytearray(file.read_bytes())
    content[4_096:] = b"\xff" * (len(content) - 4_096)
    file.write_bytes(bytes(content))
    assert (encode(file, ["text 7"], ["text 8"]), "cannot be read" in capfd.readouterr().err) == (["text 7", "text 8"], True)


def test_two_processes_share_a_file(file: Path) -> None:
    """What one of several processes has embedded the others need not."""
    stores = [VectorStore(file, "length") for _ in range(2)]
    stores[0].write({"one": b"1"})
    stores[1].write({"two": b"2"})
    found = [store.read(["one", "two"]) for store in stores]
    for store in stores:
        store.close()
    assert found == [{"one": b"1", "two": b"2"}] * 2
