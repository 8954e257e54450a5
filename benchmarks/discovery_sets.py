"""Sets of agents and needs to measure discovery with: folders as described in `benchmarks/data/discovery/README.md`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioa.protocol.agents.search import MAX_NEED_CHARS, Need
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId

OWN = Path(__file__).parent / "data" / "discovery"


@dataclass(frozen=True)
class Case:
    """A task: the needs it splits into, the agents of which any serves each need, and all agents the task takes."""

    task: Need
    needs: tuple[Need, ...]
    need_gold: tuple[frozenset[AgentId], ...]
    gold: frozenset[AgentId]


@dataclass(frozen=True)
class Variant:
    """A set with its cards written in one way."""

    set_name: str
    cards_are: str
    cards: tuple[AgentCard, ...]
    cases: tuple[Case, ...]

    @property
    def has_keywords(self) -> bool:
        """Whether any need carries keywords."""
        return any(need.keywords for case in self.cases for need in case.needs)

    @property
    def needs(self) -> int:
        """How many needs there are over all tasks."""
        return sum(len(case.needs) for case in self.cases)


def sets_in(folder: Path) -> list[Path]:
    """Return the folders of all sets in a folder, or the folder itself if it is one."""
    if (folder / "agents.jsonl").is_file():
        return [folder]
    return sorted(file.parent for file in folder.glob("*/agents.jsonl"))


def variants_of(folder: Path) -> Iterator[Variant]:
    """Yield a set once with names and descriptions alone and, where it has examples, with all that its cards say.

    Where only some agents have examples, these come again on their own, in both ways.
    """
    rows, queries = _read(folder / "agents.jsonl"), _read(folder / "queries.jsonl")
    described = [row for row in rows if row.get("examples")]
    chosen = [("names", rows, False)]
    if described:
        chosen.append(("examples", rows, True))
    if described and len(described) < len(rows):
        chosen += [("names, described only", described, False), ("examples, described only", described, True)]
    for cards_are, of, full in chosen:
        cards = tuple(_card(row, full=full) for row in of)
        yield Variant(folder.name, cards_are, cards, tuple(_cases(queries, {card.agent_id for card in cards})))


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _card(row: dict[str, Any], *, full: bool) -> AgentCard:
    """Make a card of a profile: with its summary and examples, or with its name and description alone."""
    description = row.get("description") or row["name"]
    if full and row.get("summary"):
        description = f"{description}\n{row['summary']}"
    agent_id = _agent_id(row["id"])
    return AgentCard(
        agent_id=agent_id,
        name=row["name"][:200],
        description=description[:4_000],
        examples=tuple(example[:4_000] for example in row.get("examples", ()) if example) if full else (),
        pool=PoolId(agent_id),
    )


def _cases(rows: Iterable[dict[str, Any]], here: set[AgentId]) -> Iterator[Case]:
    """Keep the needs whose agents are among those indexed."""
    for row in rows:
        if "needs" not in row:
            gold = frozenset(_agent_id(name) for name in row["gold"]) & here
            if gold:
                yield Case(_need(row["text"], ()), (_need(row["text"], ()),), (gold,), gold)
            continue
        keywords: Sequence[Sequence[str]] = row.get("keywords") or [()] * len(row["needs"])
        pairs = [
            (_need(text, words), _agent_id(gold))
            for text, words, gold in zip(row["needs"], keywords, row["need_gold"], strict=True)
            if _agent_id(gold) in here
        ]
        if pairs:
            yield Case(
                task=_need(row["text"], ()),
                needs=tuple(need for need, _ in pairs),
                need_gold=tuple(frozenset({gold}) for _, gold in pairs),
                gold=frozenset(gold for _, gold in pairs),
            )


def _need(text: str, keywords: Iterable[str]) -> Need:
    return Need(text=text[:MAX_NEED_CHARS], keywords=tuple(word for word in keywords if word))


def _agent_id(name: str) -> AgentId:
    """Make a valid id of any name."""
    return AgentId(hashlib.sha256(name.encode()).hexdigest()[:16])
