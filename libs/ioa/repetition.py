"""Sketches of texts: equal for texts that differ only in case, spacing and punctuation.

The machine compares sketches, not texts, so that changed rules for texts do not affect the replay of a log. A similar text has
another sketch: a vote, a consent, the same question to another member, a retry.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from hashlib import blake2b
from unicodedata import normalize

from ioa.protocol.ids import TaskId
from ioa.protocol.messages import AsyncTaskAssignment, Discussion, Payload, SyncTaskAssignment

_BEFORE_A_WORD = "\"'`“”„‘’‚«»‹›([{<¿¡"
_AFTER_A_WORD = "\"'`“”„‘’‚«»‹›)]}>.,;:!?…"
_BYTES = 8
_PIECE = re.compile(r"\s{1,256}+|\S{1,256}+")
"""Part of a text that is normalised at once: `normalize` takes quadratic time for a sequence of combining marks (UAX #15)."""


def normalised(text: str) -> str:
    """Return the words of a text in the compared form. Signs within a word stay: `-5` is not `5`."""
    plain = text if text.isascii() else "".join([normalize("NFKC", piece) for piece in _PIECE.findall(text)])
    # `isalnum` is faster than both strips, and most words are bare.
    words = [word if word.isalnum() else word.lstrip(_BEFORE_A_WORD).rstrip(_AFTER_A_WORD) for word in plain.casefold().split()]
    return " ".join(filter(None, words)) or plain


def sketches_of(payload: Payload) -> tuple[str, ...]:
    """Return the sketches of the texts that a message may not repeat."""
    return tuple([_sketch(text, uses) for text, uses in _texts_of(payload)])


def _texts_of(payload: Payload) -> Sequence[tuple[str, Collection[TaskId]]]:
    """Return a discussion's content, or each task of an assignment with the tasks that it uses."""
    match payload:
        case Discussion(content=content):
            return ((content, ()),)
        case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
            return [(spec.task_desc, spec.uses) for spec in specs]
        case _:
            return ()


def _sketch(text: str, uses: Collection[TaskId]) -> str:
    """Return 16 hexadecimal digits. Ids and normalised texts contain no line feed, unless a text has no word."""
    said = "\n".join((normalised(text), *sorted(uses)))
    return blake2b(said.encode(), digest_size=_BYTES).hexdigest()
