"""Break one task into the parts it lists: "a briefing on sales.csv with revenue per region, a chart of it and a report".

A goal that reads like this is *one* need: somebody may serve it as a whole, and often does. So the list is only taken apart by
whoever was given the task (see `nesting`), or for a goal that is nobody's whole.
"""

from __future__ import annotations

import re

from ioa.agent.rules.clauses import GIVEN, clauses_of
from ioa.agent.rules.needs import GoalNeed, needs_of, split_goal
from ioa.agent.rules.openings import leading_verb, strip_opening
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
_ANNOUNCED = re.compile(
    r"(?::|\bthat|\bwho)\s+(?P<steps>.+?)(?=[.;]|$|,?\s+and\s+[a-z]+s\s+(?:their|its|the|them|all)\b)", re.IGNORECASE
)
_FIGURES = re.compile(r"\b(?:a\s+)?(?:(?:key|main)\s+)?(?:figures|numbers)\b", re.IGNORECASE)
"""What a card calls figures, nobody can compute before it is said which: those of the summary are always there."""
_TEAM_TAGS = frozenset({"coordinator", "coordination", "lead", "team-lead", "planner"})


def coordinates(card: AgentCard) -> bool:
    """Whether an agent's skill is to bring others together, by its tags: `coordinator` is one that says so."""
    return not _TEAM_TAGS.isdisjoint(tag.lower() for tag in card.tags)


def lists_parts(task: str) -> bool:
    """Whether a task itself says of which parts it is made."""
    return bool(_listed(task))


def parts_of(task: str, me: AgentCard) -> tuple[GoalNeed, ...]:
    """List the parts of a task, none if it has fewer than two.

    They are several requests, or what the task lists, or what a coordinator's own card lists in its description or an example:
    "a briefing on this data: key figures, a chart and a report".
    """
    needs = split_goal(task)
    if len(needs) > 1:
        return needs
    listed = _listed(task)
    if not listed and coordinates(me):
        listed = _listed_on_card(task, me)
    return listed


def _listed(task: str) -> tuple[GoalNeed, ...]:
    shield = Shield()
    _, covered = strip_opening(shield.cover(task.strip()))
    match = _LISTS.fullmatch(covered.rstrip(" .!?"))
    if match is None:
        return ()
    topic = _TOPIC.search(match["head"])
    return _parts(shield, topic["topic"] if topic else match["head"], _items(match["items"]))


def _listed_on_card(task: str, me: AgentCard) -> tuple[GoalNeed, ...]:
    shield = Shield()
    _, covered = strip_opening(shield.cover(task.strip()))
    topic = _TOPIC.search(covered.rstrip(" .!?"))
    told_all = (me.name, me.description, *me.examples, *(skill.name for skill in me.skills))
    if topic is None or not _words(re.sub(NAMED, " ", covered)) <= _words(" ".join(told_all)):
        return ()  # the card says nothing of some word of the task, so its usual work may be no answer to it
    for told in (me.description, *me.examples):
        first, *rest = _work_named_in(told) or [""]
        if rest:
            items = [f"{_FIGURES.sub('summary statistics', first)} of {topic['topic']}", *(shield.cover(item) for item in rest)]
            return tuple(needs_of(clauses_of([f"{GIVEN} {topic['topic'].strip()}.", *items]), shield))
    return ()


def _work_named_in(told: str) -> list[str]:
    """The steps that a card names: "a briefing: figures, a chart and a report", "agents that compute figures and draw charts"."""
    for match in _ANNOUNCED.finditer(told):
        steps = [need.request for need in split_goal(match["steps"])]
        if len(steps) > 1 and all(leading_verb(step) is not None for step in steps):
            return steps
        items = _items(match["steps"])
        if match.group().startswith(":") and len(items) > 1:
            return [item if " " in item else f"a {item}" for item in items]
    return []


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[^\W_]+", text.lower())}


def _items(text: str) -> list[str]:
    items = [item for item in _COMMA.split(text) if item.strip()]
    if items:
        items[-1:] = _AND.split(items[-1])
    return [item.strip() for item in items]


def _parts(shield: Shield, topic: str, items: list[str]) -> tuple[GoalNeed, ...]:
    if len(items) < 2 or not all(len(item.split()) > 1 or re.search(NAMED, item) for item in items):
        return ()
    return tuple(needs_of(clauses_of([f"{GIVEN} {topic.strip()}.", *items]), shield))
