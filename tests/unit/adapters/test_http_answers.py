"""What a stranger's server answers is read within bounds, and as what it is."""

import gzip

import httpx
import pytest

from ioa.adapters.http_answers import UnfitAnswerError, whole_answer
from tests.rig.counted_body import PIECE, CountedBody

MOST_BYTES = 1_000_000


@pytest.mark.parametrize("named", ["gzip", "gzip, gzip", "identity, deflate", "br", "zstd", "GZIP"])
async def test_what_is_packed_is_not_even_read(named: str) -> None:
    """A few hundred bytes would unpack to as much memory as there is."""
    body = CountedBody(gzip.compress(gzip.compress(b" " * 10_000_000)))
    with pytest.raises(UnfitAnswerError):
        await whole_answer(httpx.Response(200, headers={"Content-Encoding": named}, stream=body), MOST_BYTES)
    assert body.taken == 0


async def test_an_endless_answer_is_left_where_it_has_too_much() -> None:
    """Twenty pieces may be read; the one that is too much is the last."""
    body = CountedBody(*[PIECE] * 1_000)
    with pytest.raises(UnfitAnswerError):
        await whole_answer(httpx.Response(200, stream=body), MOST_BYTES)
    assert body.taken == MOST_BYTES // len(PIECE) + 1


async def test_of_a_refusal_is_read_what_it_says_first() -> None:
    """Its status stands, whatever follows."""
    body = CountedBody(b"No. ", *[PIECE] * 1_000)
    read = await whole_answer(httpx.Response(429, headers={"Retry-After": "7"}, stream=body), MOST_BYTES)
    assert (read.status_code, read.headers["retry-after"], read.text[:3], body.taken) == (429, "7", "No.", 3)


async def test_a_refusal_that_is_packed_refuses_without_words() -> None:
    """Its status stands too."""
    packed = httpx.Response(401, headers={"Content-Encoding": "gzip"}, stream=CountedBody(gzip.compress(b"Who?")))
    read = await whole_answer(packed, MOST_BYTES)
    assert (read.status_code, read.text) == (401, "")


@pytest.mark.parametrize("charset", ["hex", "zlib", "base64", "rot13", "undefined", "idna", "utf-16", "latin-1"])
async def test_text_is_utf_8_whatever_charset_it_names(charset: str) -> None:
    """Python knows charsets that are none for text, at which reading it failed with errors that nobody expects."""
    kind = {"Content-Type": f"text/plain; charset={charset}"}
    read = await whole_answer(httpx.Response(200, headers=kind, stream=CountedBody("Gruß 漢".encode() + b"\xff")), MOST_BYTES)
    assert read.text == "Gruß 漢\ufffd"
