"""Break one task into the parts it lists: "a briefing on sales.csv with revenue per region, a chart of it and a report".

A goal that reads like this is *one* need: somebody may serve it as a whole, and often does. So the list is only taken apart by
whoever was given the task (see `nesting`), or for a goal that is nobody's whole.
"""

from __future__ import annotations

import re

from ioa.agent.rules.text.clauses import DOCUMENT, Request
from ioa.agent.rules.text.goal_splitting import GoalNeed, needs_of, split_goal
from ioa.agent.rules.text.masking import INPUT, NAMED, Mask
from ioa.agent.rules.text.references import is_document
from ioa.protocol.cards import AgentCard

_LISTS = re.compile(r" ?: | (?:with|including|covering|containing|comprising) ", re.IGNORECASE)
_HEAD = re.compile(
    rf"(?:(?:please )?(?:prepare|write|make|create|draft|give me|produce) )?(?:an? |the )?(?:full |complete )?{DOCUMENT}"
    rf"(?: (?:on|of|about|for|from) {INPUT}(?: and {INPUT})*)?",
    re.IGNORECASE,
)
"""What may stand before a list of parts: it says nothing but what is made of them. Any other word may restrict the parts."""
_FILE = re.compile(r"\b(?:report|document|page)\b", re.IGNORECASE)
"""A head that asks for one of these wants a file of its own; a briefing is the answer itself."""
_COMMA = re.compile(r" ?[,;] ?(?:and )?", re.IGNORECASE)
_AND = re.compile(r" and ", re.IGNORECASE)
_INPUT, _NAMED = re.compile(INPUT), re.compile(NAMED)
_TEAM_TAGS = frozenset({"coordinator", "coordination", "lead", "team-lead", "planner"})


def coordinates(card: AgentCard) -> bool:
    """Whether an agent's skill is to bring others together, by its tags: `coordinator` is one that says so."""
    return not _TEAM_TAGS.isdisjoint(tag.lower() for tag in card.tags)


def parts_of(task: str) -> tuple[GoalNeed, ...]:
    """List the parts of a task, none if it has fewer than two: they are several requests, or what the task lists."""
    needs = split_goal(task)
    return needs if len(needs) > 1 else listed_in(task)


def listed_in(task: str) -> tuple[GoalNeed, ...]:
    """List what a single request consists of, none if it lists fewer than two things."""
    mask = Mask()
    head, *listed = _LISTS.split(" ".join(mask.cover(task).split()).rstrip(" .!?"), maxsplit=1)
    items = _items(listed[0]) if listed else []
    if len(items) < 2 or not _HEAD.fullmatch(head) or not all(len(item.split()) > 1 or _NAMED.search(item) for item in items):
        return ()
    given = " and ".join(dict.fromkeys(_INPUT.findall(head)))
    requests = [Request(item, listed=True, given=given) for item in items]
    if (named := _FILE.search(head)) and not any(is_document(item) for item in items):
        requests.append(Request(f"a {named[0].lower()} of the results", listed=True))
    return needs_of(requests, mask)


def _items(text: str) -> list[str]:
    items = [item for item in _COMMA.split(text) if item.strip()]
    if items:
        before, *last = _AND.split(items[-1])
        items[-1:] = [before, *last] if len(last) == 1 else [items[-1]]
    return [item.strip() for item in items]
