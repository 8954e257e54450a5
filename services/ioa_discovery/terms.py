"""BM25 as sparse vectors: the card's side of the formula is a weight per term, the engine adds the rarity (IDF).

Words are lower-cased, stop words dropped and the rest stemmed with Snowball's English stemmer; a word of a script that does
not put spaces between words counts by the character. A term is the first 32 bits of its BLAKE2b digest, the same on every
machine. The average length is a constant, as in Qdrant's own BM25, so that adding a card never changes the others.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from ioa.errors import MissingExtraError
from ioa.ports.agent_index import SparseVector

Stem = Callable[[str], str]
"""What makes words of one kind equal: `charts` and `chart`."""

K1 = 1.2
B = 0.75
AVERAGE_TERMS = 64
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Thai, Japanese and Chinese."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been but by can could did do does doing for from had has have
    he her here hers him his how i if in into is it its just let like may me might more most my no not of on one or other our
    out over own please she should so some such than that the their them then there these they this those through to too up
    us very want was we were what when where which while who whom why will with would you your yours yes
    """.split()
)
_REMEMBERED_CHARS = 64
"""How long the words are that are stemmed, and remembered: of those of which a need is made up each may have 4,000 characters, or
16 kB, and the stemmer takes a microsecond and more for each of them."""
_stemming = threading.Lock()
"""The stemmer keeps the word it works on in itself, and cards are read in threads."""


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    # Not at the top: what is handed another stem, as the test kit is, needs no library for it.
    try:
        import snowballstemmer  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError.of("The word index", "discovery") from error
    return snowballstemmer.stemmer("english")


def english_stem(word: str) -> str:
    """Stem by Snowball.

    Raises:
        MissingExtraError: The stemmer is not installed.
    """
    stemmer = _stemmer()
    with _stemming:
        return str(stemmer.stemWord(word))


def whole_word(word: str) -> str:
    """Stem nothing."""
    return word


def _term(word: str, stem: Stem) -> int:
    return int.from_bytes(hashlib.blake2b(stem(word).encode(), digest_size=4).digest(), "big")


_remembered_term = lru_cache(maxsize=65_536)(_term)


def words(text: str) -> list[str]:
    """Return the words of a text that count, in order, with repetitions."""
    return [word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


def terms_of(some: Iterable[str], stem: Stem) -> list[int]:
    """Return the terms of words; of one that is new it takes a fiftieth of a millisecond."""
    return [_remembered_term(word, stem) if len(word) <= _REMEMBERED_CHARS else _term(word, whole_word) for word in some]


def terms(text: str, stem: Stem = english_stem) -> list[int]:
    """Return the terms of a text in order, with repetitions."""
    return terms_of(words(text), stem)


def document_terms(text: str, stem: Stem = english_stem) -> SparseVector:
    """Weigh the terms of a card: often is better, with saturation, and a long text counts less (BM25)."""
    counts = Counter(terms(text, stem))
    length = K1 * (1 - B + B * counts.total() / AVERAGE_TERMS)
    return SparseVector(tuple(counts), tuple(n * (K1 + 1) / (n + length) for n in counts.values()))


def query_terms(text: str, stem: Stem = english_stem) -> SparseVector:
    """Weigh each term of a need as one."""
    return query_vector(terms(text, stem))


def query_vector(found: Iterable[int]) -> SparseVector:
    """Weigh each term as one, however often it is found."""
    distinct = tuple(dict.fromkeys(found))
    return SparseVector(distinct, (1.0,) * len(distinct))
