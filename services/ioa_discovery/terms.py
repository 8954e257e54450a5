"""BM25 as sparse vectors: a card has a weight per term, and the index adds the rarity of the term (IDF).

Words are lower-cased, stop words removed, and the others stemmed with Snowball's English stemmer. In scripts without spaces
between words, each character is a word. A term is the first 32 bits of its BLAKE2b digest. The average length is a constant, as in
Qdrant's BM25, so that a new card does not change the others.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from functools import lru_cache
from typing import Any

from ioa.ports.agent_index import SparseVector

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
_stemming = threading.Lock()
"""The stemmer is not thread-safe."""


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    """Return Snowball's stemmer; None in the test kit without the extra `discovery`, whose index compares whole words."""
    try:
        import snowballstemmer  # type: ignore[import-untyped]
    except ImportError:
        return None
    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=65_536)
def _term(word: str) -> int:
    with _stemming:
        stemmer = _stemmer()
        stem = word if stemmer is None else str(stemmer.stemWord(word))
    return int.from_bytes(hashlib.blake2b(stem.encode(), digest_size=4).digest(), "big")


def terms(text: str) -> list[int]:
    """Return a hash of the stem of each word of a text, in order, with repetitions, without stop words."""
    return [_term(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


def document_terms(text: str) -> SparseVector:
    """Return the BM25 weights of a card's terms: repetitions count more, with saturation; a long text counts less."""
    counts = Counter(terms(text))
    length = K1 * (1 - B + B * counts.total() / AVERAGE_TERMS)
    return SparseVector(tuple(counts), tuple(n * (K1 + 1) / (n + length) for n in counts.values()))


def query_terms(text: str) -> SparseVector:
    """Return the terms of a need, each with weight one."""
    distinct = tuple(dict.fromkeys(terms(text)))
    return SparseVector(distinct, (1.0,) * len(distinct))
