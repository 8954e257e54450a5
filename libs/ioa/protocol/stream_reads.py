"""Reading streams as users may: by the few forms of direct gets that our clients need (NATS ADR-31), asked of group setup.

A permission of nats-server tells which stream somebody may read, and not what he asks for: one request for the last messages of
40,000 patterns walks a stream as often, with the stream locked. So nobody outside asks JetStream itself.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ioa.protocol.model import Carrier, Model
from ioa.protocol.usage import MAX_COUNT

MOST_SUBJECTS = 1_000
"""Of how many subjects the last messages may be asked for at once."""
MOST_MESSAGES, MOST_READ_BYTES = 1_024, 4_000_000
"""How many messages one request may ask for, and how many bytes."""

_Subject = Annotated[str, Field(min_length=1, max_length=512)]
_Seq = Annotated[int, Field(ge=0, le=2**63 - 1)]


class ReadStream(Model):
    """What is asked of a stream, in one of four forms. The fields are those of direct gets.

    Attributes:
        seq: The message of this sequence or, with `next_by_subj`, the first one of that subject or pattern from it on.
        next_by_subj: Of which subject or pattern.
        batch: So many of them, and it is told how many there are behind them.
        max_bytes: Of several, the last message is the one that reaches it.
        last_by_subj: The last message of this subject or pattern.
        multi_last: The last message of each of these subjects, none of them a pattern.
        up_to_seq: As they were when the stream had come so far.
    """

    seq: _Seq | None = None
    next_by_subj: _Subject | None = None
    batch: Annotated[int, Field(ge=1, le=MOST_MESSAGES)] | None = None
    max_bytes: Annotated[int, Field(ge=1, le=MOST_READ_BYTES)] | None = None
    last_by_subj: _Subject | None = None
    multi_last: Annotated[tuple[_Subject, ...], Field(max_length=MOST_SUBJECTS)] = ()
    up_to_seq: _Seq | None = None

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        forms = (self.seq is not None, self.last_by_subj is not None, bool(self.multi_last))
        if sum(forms) != 1:
            raise ValueError("one of seq, last_by_subj and multi_last is needed, and no other")
        if self.seq is None and self.next_by_subj is not None:
            raise ValueError("next_by_subj needs seq")
        if self.next_by_subj is None and self.batch is not None:
            raise ValueError("a batch needs next_by_subj")
        if self.max_bytes is not None and not self.is_of_several:
            raise ValueError("max_bytes needs a batch, or multi_last")
        if (self.up_to_seq is not None) != bool(self.multi_last):
            raise ValueError("multi_last and up_to_seq need each other")
        if any(map(is_pattern, self.multi_last)):
            raise ValueError("no subject of multi_last may be a pattern")
        return self

    @property
    def is_of_several(self) -> bool:
        """Whether several messages may answer it."""
        return self.batch is not None or bool(self.multi_last)


class ReadRow(Model):
    """A message that was read, without its data, which has so many bytes."""

    seq: _Seq
    subject: str
    stored: str
    """When, as the server says it (RFC 3339)."""
    headers: dict[str, str] = Field(default_factory=dict)
    size_bytes: Annotated[int, Field(ge=0, le=MAX_COUNT)]


class StreamRead(Carrier):
    """What was read: the messages in the order of their sequences, and their data one behind the other.

    `pending` is how many of those that were asked for are behind the last one.
    """

    messages: tuple[ReadRow, ...]
    pending: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0


def is_pattern(subject: str) -> bool:
    """Whether a subject has wildcards."""
    return not {"*", ">"}.isdisjoint(subject.split("."))
