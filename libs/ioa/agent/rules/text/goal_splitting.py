"""Split what somebody wants into needs, each of which one agent can serve, and find out which build on which.

Nothing is known of the agents or of the subject. Every word of the goal is in some need but for greetings and list marks, and
dependencies point backwards only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ioa.agent.rules.text.clauses import Request, requests_of, without_courtesy
from ioa.agent.rules.text.masking import INPUT, NAMED, Mask
from ioa.agent.rules.text.references import runs_code, uses_of

MAX_READ_CHARS = 2_000
"""A longer goal or task is not split."""
MAX_NEEDS_OF_A_GOAL = 16
_INPUT, _NAMED = re.compile(INPUT), re.compile(NAMED)


@dataclass(frozen=True)
class GoalNeed:
    """One thing to be done: what the assignee is told, and the positions of the earlier needs whose results it builds on."""

    text: str
    uses: tuple[int, ...] = ()


def split_goal(goal: str, came: Collection[str] = ()) -> tuple[GoalNeed, ...]:
    """Split a goal into needs. What cannot be split for certain is one need, as it is.

    Args:
        goal: What somebody wants.
        came: The names of the files that came with it. Where all of them are shown before the requests (`Here is sales.csv.`), no
            request is told so: each sees them all, and some, such as `What is 15 % of 240?`, have nothing to do with any.
    """
    mask = Mask()
    covered = without_courtesy(mask.cover(goal).strip())
    return needs_of(requests_of(covered) or [], mask, came) or (GoalNeed(mask.uncover(covered) or goal),)


def needs_of(requests: Sequence[Request], mask: Mask, came: Collection[str] = ()) -> tuple[GoalNeed, ...]:
    """Turn covered requests into needs; none if it is not certain which build on which or on what, or if they are too many.

    Who names a file builds on whatever code was run before, which may have written it.
    """
    uses = uses_of(requests) if len(requests) <= MAX_NEEDS_OF_A_GOAL else None
    if uses is None:
        return ()
    needs = _needs(requests, uses, mask, came)
    runs = [at for at, need in enumerate(needs) if runs_code(need.text)]
    reads = [bool(_INPUT.search(mask.cover(need.text))) for need in needs]
    before = [tuple(run for run in runs if run < at and reads[at]) for at in range(len(needs))]
    return tuple(replace(need, uses=need.uses or on) for need, on in zip(needs, before, strict=True))


def _needs(requests: Sequence[Request], uses: Sequence[tuple[int, ...]], mask: Mask, came: Collection[str]) -> tuple[GoalNeed, ...]:
    if came and all(one.shown and _names(one.given, mask) == {*came} for one in requests):
        return tuple(GoalNeed(mask.uncover(one.text), on) for one, on in zip(requests, uses, strict=True))
    told = [_told(request, on) for request, on in zip(requests, uses, strict=True)]
    given = {mask.uncover(named) for request in requests for named in _INPUT.findall(request.given)}
    if not given <= {mask.uncover(named) for text in told for named in _INPUT.findall(text)}:
        return ()  # an input that no request speaks of
    return tuple(GoalNeed(mask.uncover(text), on) for text, on in zip(told, uses, strict=True))


def _names(covered: str, mask: Mask) -> set[str]:
    """Return the names of files in a covered text, without their folders and quotes."""
    return {mask.uncover(named).strip("`'\"").rpartition("/")[2] for named in _INPUT.findall(covered)}


def _told(request: Request, uses: tuple[int, ...]) -> str:
    """Return a request with the input that was named for it beforehand, if it is of no result and names none itself."""
    if not request.given or uses or _NAMED.search(request.text):
        return request.text
    return f"{request.text.rstrip('.?! ')} in {request.given}"
