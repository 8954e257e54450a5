"""Break one task into the parts it lists: "a briefing on sales.csv with revenue per region, a chart of it and a report".

A goal that reads like this is *one* need: somebody may serve it as a whole, and often does. So the list is only taken apart by
whoever was given the task (see `nesting`), or for a goal that is nobody's whole.
"""

from __future__ import annotations

import re

from ioa.agent.rules.clauses import GIVEN, clauses_of
from ioa.agent.rules.needs import GoalNeed, needs_of, split_goal
from ioa.agent.rules.openings import strip_opening
from ioa.agent.rules.shielding import NAMED, Shield
from ioa.protocol.cards import AgentCard

_LISTS = re.compile(
    r"(?P<head>.*?\S)(?:\s*+(?:,\s*+)?(?<=[,\s])(?:with|including|covering|containing|comprising|featuring|consisting\s+of|made\s+up\s+of"
    r"|(?:that|which)\s+(?:has|shows|includes|contains|covers|consists\s+of)|showing|plus|namely)\b:?|\s*+:)\s++(?P<items>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TOPIC = re.compile(r"\b(?:on|about|of|for|from|in)\s+(?P<topic>.+)$", re.IGNORECASE | re.DOTALL)
_COMMA = re.compile(r"\s*[,;]\s*(?:and\s+|as\s+well\s+as\s+|plus\s+)?", re.IGNORECASE)
_AND = re.compile(r"\s+(?:and|as\s+well\s+as|plus)\s+(?!.*\s(?:and|as\s+well\s+as|plus)\s)", re.IGNORECASE)
_TEAM_TAGS = frozenset({"coordinator", "coordination", "lead", "team-lead", "planner"})


def coordinates(card: AgentCard) -> bool:
    """Whether an agent's skill is to bring others together, by its tags: `coordinator` is one that says so."""
    return not _TEAM_TAGS.isdisjoint(tag.lower() for tag in card.tags)


def parts_of(task: str) -> tuple[GoalNeed, ...]:
    """List the parts of a task, none if it has fewer than two: they are several requests, or what the task lists."""
    needs = split_goal(task)
    return needs if len(needs) > 1 else _listed(task)


def _listed(task: str) -> tuple[GoalNeed, ...]:
    shield = Shield()
    _, covered = strip_opening(shield.cover(task.strip()))
    match = _LISTS.fullmatch(covered.rstrip(" .!?"))
    if match is None:
        return ()
    topic = _TOPIC.search(match["head"])
    return _parts(shield, topic["topic"] if topic else match["head"], _items(match["items"]))


def _items(text: str) -> list[str]:
    items = [item for item in _COMMA.split(text) if item.strip()]
    if items:
        items[-1:] = _AND.split(items[-1])
    return [item.strip() for item in items]


def _parts(shield: Shield, topic: str, items: list[str]) -> tuple[GoalNeed, ...]:
    if len(items) < 2 or not all(len(item.split()) > 1 or re.search(NAMED, item) for item in items):
        return ()
    return tuple(needs_of(clauses_of([f"{GIVEN} {topic.strip()}.", *items]), shield))
