"""Split what somebody wants into needs, each of which one agent can serve, and find out which build on which.

Pure text rules: nothing is known of the agents or of the subject. Every file name, address, number and quotation of the goal is
in some need, and dependencies point backwards only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ioa.agent.rules.clauses import GIVEN, Clause, clauses_of
from ioa.agent.rules.layout import is_request, is_scoped, sentences_of
from ioa.agent.rules.lexicon import PROSE, TABLE_FILE, TABULAR
from ioa.agent.rules.openings import Opening, base_form, seems_imperative
from ioa.agent.rules.references import resolve
from ioa.agent.rules.shielding import FILE, INPUT, NAMED, SHIELDED, Shield

MAX_NEEDS_OF_A_GOAL = 8
_FROM_INPUT = re.compile(
    rf"\s+(?:in|of|at|from|using)\s+(?:the\s+(?:file|page|text|table)\s+)?{INPUT}(?:\s+and\s+{INPUT})*", re.IGNORECASE
)
ROUNDS = 5
"""How often the outcome is split again when taking away an opening has brought a new one to light."""


@dataclass(frozen=True)
class GoalNeed:
    """One thing to be done.

    Attributes:
        text: What the assignee is told; it stands on its own.
        request: The same without what was told around it: for discovery and headings.
        uses: The positions of the earlier needs whose results this one builds on.
        query: What discovery is asked. The file behind an earlier result is not named: it would speak for who reads such files.
    """

    text: str
    request: str
    uses: tuple[int, ...] = ()
    query: str = ""


def split_goal(goal: str) -> tuple[GoalNeed, ...]:
    """Split a goal into one to eight needs. What cannot be split is one need, and stays one if it is split again."""
    needs = _split(goal)
    for _ in range(ROUNDS):
        if len(needs) > 1 or needs[0].text == goal:
            break
        goal = needs[0].text
        needs = _split(goal)
    return needs


def _split(goal: str) -> tuple[GoalNeed, ...]:
    shield = Shield()
    covered, whole = shield.cover(goal), goal.strip() or goal
    if is_scoped(covered):
        return (GoalNeed(whole, whole, query=whole),)
    clauses = clauses_of(sentences_of(covered, shield))
    needs = needs_of(clauses, shield)
    if len(needs) > 1 and not _stand_alone(clauses):
        return (GoalNeed(whole, whole, query=whole),)
    if len(needs) < 2:
        request = needs[0].request if needs else whole
        return (GoalNeed(needs[0].text if needs else whole, request or whole, query=request or whole),)
    return _at_most(MAX_NEEDS_OF_A_GOAL, needs)


_LEADS_UP = re.compile(r"(?:about|among|at|based|by|for|from|given|in|of|on|using|with|within)\b", re.IGNORECASE)


def _stand_alone(clauses: Sequence[Clause]) -> bool:
    """Whether each request asks for something by itself. One that only restricts another one must not part from it.

    The first may be what is wanted without a verb ("the mean of x and a chart"), but not what only leads up to a verb.
    """
    first, *others = clauses
    return (_asks(first) or not _LEADS_UP.match(first.text)) and all(map(_asks, others))


def _asks(clause: Clause) -> bool:
    """Whether a request was wished for, put in order or linked to what came before, or asks in its own words at a place that can be
    its beginning: its start, or behind a comma or an input."""
    if clause.opening != Opening():
        return True
    starts = [0, *(found.end() for found in re.finditer(rf",|{NAMED}", clause.text))]
    begun = (clause.text[start:].strip() for start in starts)
    return any(is_request(base_form(text) or text) or seems_imperative(text) for text in begun)


def needs_of(clauses: Sequence[Clause], shield: Shield) -> list[GoalNeed]:
    """Turn covered requests into needs that stand on their own."""
    named = [shield.named_in(f"{clause.context} {clause.text}") for clause in clauses]
    resolved = resolve(clauses, named, lambda position, text: _carried(position, text, clauses, shield))
    told = _told(clauses)
    needs: list[GoalNeed] = []
    for position, one in enumerate(resolved):
        request = f"{one.text}{one.clause.tail}"
        context = one.clause.context
        if _says_no_more(context, request, shield):
            context = ""
        if not context and not one.uses and told[position] and not re.search(NAMED, request):
            context = told[position] if re.search(NAMED, told[position]) else ""
        text = f"{_sentence(context)} {request[:1].upper()}{request[1:]}" if context else request
        query = _FROM_INPUT.sub("", request) if one.uses else request
        needs.append(GoalNeed(shield.uncover(text), shield.uncover(request), one.uses, shield.uncover(query)))
    return needs


_MANY_WORDS = 12
_ABOUT_A_FILE = re.compile(
    rf"{GIVEN}|.*\b(?:files?|data|datasets?|spreadsheets?|tables?|documents?|texts?|pages?|notes|attached)\b", re.IGNORECASE
)


def _says_no_more(context: str, request: str, shield: Shield) -> bool:
    """Whether a context only announces an input that the request names itself, or that comes with the goal."""
    named = re.findall(NAMED, context)
    told_more = re.search(rf"\d|{SHIELDED}", re.sub(NAMED, "", context))
    if told_more or not set(named) <= set(shield.named_in(request)) or len(context.split()) > _MANY_WORDS:
        return False
    return bool(_ABOUT_A_FILE.match(context))


def _told(clauses: Sequence[Clause]) -> list[str]:
    told: list[str] = []
    for clause in clauses:
        told.append(clause.context or (told[-1] if told else ""))
    return told


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _carried(position: int, request: str, clauses: Sequence[Clause], shield: Shield) -> str:
    """Add the file that was named for a neighbour, if the request plainly asks about such a file and names none."""
    if re.search(NAMED, request):
        return request
    words = set(re.findall(r"[a-z]+", request.lower()))
    before = [(clause.context + " " + clause.text) for clause in reversed(clauses[: position + 1])]
    after = [clause.text for clause in clauses[position + 1 :] if clause.sentence == clauses[position].sentence]
    for told in (*before, *after):
        files = [char for char in shield.named_in(told) if re.match(FILE, char)]
        for file in files:
            given = told is before[0] and clauses[position].context.startswith(GIVEN)
            table = bool(TABLE_FILE.search(shield.uncover(file)))
            if len(files) == 1 and (given or words & (TABULAR if table else PROSE)):
                mark = request[len(request.rstrip(".?!")) :]
                return f"{request.rstrip('.?!')} in {file}{mark}"
    return request


def _at_most(limit: int, needs: list[GoalNeed]) -> tuple[GoalNeed, ...]:
    while len(needs) > limit:
        at = min(range(len(needs) - 1), key=lambda i: len(needs[i].text) + len(needs[i + 1].text))
        first, second = needs[at], needs[at + 1]
        uses = {use for use in (*first.uses, *second.uses) if use != at}
        merged = GoalNeed(
            f"{_sentence(first.text)} {second.text}", f"{_sentence(first.request)} {second.request}", tuple(sorted(uses))
        )
        rest = [
            GoalNeed(need.text, need.request, tuple(sorted({use if use <= at else use - 1 for use in need.uses})))
            for need in needs[at + 2 :]
        ]
        needs = [*needs[:at], merged, *rest]
    return tuple(needs)


def restate(task_desc: str, earlier: Sequence[str]) -> str:
    """Put a task into words that stand on their own, given what the tasks it uses were told: "chart it" says what "it" is."""
    if not earlier:
        return task_desc
    shield = Shield()
    told = [_as_clause(text, at, shield) for at, text in enumerate(earlier)]
    mine = clauses_of(sentences_of(shield.cover(task_desc), shield))
    if len(mine) != 1 or mine[0].context:
        return task_desc
    clauses = [*told, replace(mine[0], sentence=len(told))]
    resolved = resolve(clauses, [shield.named_in(clause.text) for clause in clauses], lambda _, text: text)
    return shield.uncover(resolved[-1].text + mine[0].tail) if resolved[-1].uses else task_desc


def _as_clause(text: str, at: int, shield: Shield) -> Clause:
    covered = shield.cover(text.strip())
    return Clause(covered, Opening(), covered, at)
