"""Data of an agent's memory: summaries and passages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ioa.protocol.ids import CommId

_MAX_QUERY_WORDS = 64


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


def query_words(text: str) -> list[str]:
    """Return the distinct words of a text by which passages are found, at most 64."""
    return list(dict.fromkeys(re.findall(r"\w+", text.casefold())))[:_MAX_QUERY_WORDS]
