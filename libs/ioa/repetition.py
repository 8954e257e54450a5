"""What tells a text that is said word for word again: a sketch of it that ignores case, spacing and punctuation.

The machine compares sketches and reads no prose, so that a log can be replayed whatever becomes of the rules for texts. A
message that is similar but not identical is accepted: a vote, a consent, the same question to another member, a retry.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

from ioa.normal_form import normal_form
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import AsyncTaskAssignment, Discussion, Payload, SyncTaskAssignment

_BEFORE_A_WORD = "\"'`“”„‘’‚«»‹›([{<¿¡"
_BEHIND_A_WORD = "\"'`“”„‘’‚«»‹›)]}>.,;:!?…"
_BYTES = 8


def normalised(text: str) -> str:
    """Return the words of a text as they are compared; signs and what stands within a word are kept: `-5` is not `5`."""
    plain = normal_form("NFKC", text)
    # Most words are bare, which is told in half the time that it takes to look at both their ends.
    words = [word if word.isalnum() else word.lstrip(_BEFORE_A_WORD).rstrip(_BEHIND_A_WORD) for word in plain.casefold().split()]
    return " ".join(filter(None, words)) or plain


def sketches_of(payload: Payload) -> tuple[str, ...]:
    """Sketch what a message may say again."""
    return tuple([_sketch(text, uses) for text, uses in _texts_of(payload)])


def _texts_of(payload: Payload) -> Sequence[tuple[str, Collection[TaskId]]]:
    """Return what a message may say again: a discussion's content, or each task of an assignment with what it uses."""
    match payload:
        case Discussion(content=content):
            return ((content, ()),)
        case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
            return [(spec.task_desc, spec.uses) for spec in specs]
        case _:
            return ()


def _sketch(text: str, uses: Collection[TaskId]) -> str:
    """16 hexadecimal digits. Ids hold no line feed, and neither does a normalised text, unless it has no word."""
    said = "\n".join((normalised(text), *sorted(uses)))
    return blake2b(said.encode(), digest_size=_BYTES).hexdigest()
