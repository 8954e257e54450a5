"""Data of an agent's memory: encounters, observations, summaries and passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import CommId
from ioa.protocol.outcomes import Outcome

_MAX_QUERY_WORDS = 64
MAX_REMEMBERED_BYTES = 4 * 1024 * 1024
"""Maximum bytes of the passages per group: 2,000 passages of 2 kB."""


@dataclass(frozen=True)
class Encounter:
    """Outcomes, oldest first, of the tasks that this agent assigned to another agent in one group."""

    card: AgentCard
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class StoredObservation:
    """The agent's observation in a turn of a group. Only the agent reads it."""

    turn: int
    text: str


@dataclass(frozen=True)
class StoredSummary:
    """A summary of those messages of a group whose names `covers` contains, in any order."""

    covers: frozenset[str]
    text: str


@dataclass(frozen=True)
class Passage:
    """A message or result that an agent was shown, with its speaker; `name` is unique within the group."""

    comm_id: CommId
    name: str
    text: str

    @property
    def size_bytes(self) -> int:
        """Size of the text."""
        return len(self.text.encode("utf-8", "replace"))


def query_words(text: str) -> list[str]:
    """Return the distinct words of a text by which passages are found, at most 64."""
    return list(dict.fromkeys(re.findall(r"\w+", text.casefold())))[:_MAX_QUERY_WORDS]


def newest_passages(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Return the last passages of a group that fit into `MAX_REMEMBERED_BYTES`, in their order."""
    left, first = MAX_REMEMBERED_BYTES, len(passages)
    while first and (left := left - passages[first - 1].size_bytes) >= 0:
        first -= 1
    return passages[first:]
