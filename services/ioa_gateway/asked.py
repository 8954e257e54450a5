"""What a goal asks of whoever looks at it: turns of people that a caller answers for, and questions to the user of the goal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from ioa.beside import beside
from ioa.client.questions import OpenQuestion, open_questions
from ioa.client.waiting import Awaited, AwaitedDocument, open_turn, people_in
from ioa.errors import NotFoundError, RateLimitedError, UnavailableError
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.api_keys import Scope
from ioa.protocol.ids import AgentId, GoalName
from ioa.protocol.team import person_of
from ioa_gateway.callers import Caller
from ioa_gateway.calls import ApiCall


def awaited_people(caller: Caller, status: GoalStatus) -> list[AgentId]:
    """Name the people whom a caller answers for and a goal waits for, which its standing alone says, without its charter."""
    standing = status.standing
    if status.result is not None or standing is None:
        return []
    floor = standing.state.floor
    return [one for one in people_in(standing.state) if one in floor and caller.answers_for(person_of(one))]


def asked_of(caller: Caller, status: GoalStatus) -> list[Awaited]:
    """Say what in a goal is up to people whom a caller answers for; its charter is needed for that."""
    standing = status.standing
    if standing is None or standing.charter is None:
        return []
    found = [open_turn(standing.charter, standing.state, one) for one in awaited_people(caller, status)]
    return [one for one in found if one is not None]


def asked_documents(found: Sequence[Awaited]) -> list[AwaitedDocument]:
    """Describe open turns: the first one with its whole text, the others with the beginning of their texts."""
    documents = [AwaitedDocument.of(one) for one in found]
    return documents[:1] + [one.begun() for one in documents[1:]]


def questions_to(caller: Caller, status: GoalStatus) -> tuple[OpenQuestion, ...]:
    """Say what a goal's group and its tasks ask a caller as the user of the goal."""
    standing = status.standing
    if status.result is not None or standing is None or not is_user(caller, status.record.goal.name):
        return ()
    return open_questions(standing.state)


def as_asked(call: ApiCall, name: GoalName) -> AbstractAsyncContextManager[GoalStatus]:
    """Look at a goal, see `ApiCall.looking`, so that it can be said what it asks the caller: of people its charter says it."""
    return call.looking(name, with_team=bool(call.caller.people))


def is_user(caller: Caller, name: GoalName) -> bool:
    """Whether a caller may answer what a goal asks its user."""
    return Scope.GOALS_WRITE in caller.scopes and name.owner == caller.user


def may_ask(caller: Caller, name: GoalName, entry: Mapping[str, Any]) -> bool:
    """Whether a goal asks a caller something since an entry, as that is told."""
    return caller.answers_for_any(entry["floor"]) or (not entry["depth"] and bool(entry["questions"]) and is_user(caller, name))


async def documents_of(call: ApiCall, goal: GoalName, after: int) -> AsyncGenerator[Mapping[str, Any] | None, None]:
    """Yield the entries of a goal's group as documents; None after silence. It ends with the group, or when there will be none.

    A goal that was refused has no group. Whether it was is asked after silence, as long as there is no entry.
    """
    has_begun = False
    async with aclosing(call.rooms.documents(call.caller, goal.comm_id, after)) as documents:
        async for entry in documents:
            yield entry
            has_begun = has_begun or entry is not None
            if not has_begun and await _is_over(call, goal):
                return


async def _is_over(call: ApiCall, goal: GoalName) -> bool:
    try:
        return await call.client.result(goal) is not None
    except (UnavailableError, RateLimitedError):
        return False  # it is asked again after the next silence


async def settled(call: ApiCall, name: GoalName, left: Callable[[], Awaitable[None]] | None = None) -> None:
    """Wait until a goal has ended or asks the caller something, or until `left` returns: nobody waits any more."""
    over = asyncio.Event()

    async def end() -> None:
        await call.client.result(name, wait=True)
        over.set()

    async def ask() -> None:
        if (call.caller.people or is_user(call.caller, name)) and await _is_asked(call, name):
            over.set()

    async def leave() -> None:
        if left is not None:
            await left()
            over.set()

    async with beside(leave(), end(), ask()):
        await over.wait()


async def _is_asked(call: ApiCall, name: GoalName) -> bool:
    """Wait until a goal asks the caller something; False if it has ended."""
    try:
        seq = await _asks_nothing_up_to(call, name)
    except NotFoundError:
        seq = 0  # others of its user have to end first
    if seq is None:
        return True
    async with aclosing(call.rooms.documents(call.caller, name.comm_id, seq)) as documents:
        async for entry in documents:
            if entry is not None and may_ask(call.caller, name, entry) and await _asks_nothing_up_to(call, name) is None:
                return True
    return False


async def _asks_nothing_up_to(call: ApiCall, name: GoalName) -> int | None:
    """Tell up to which sequence a goal asks the caller nothing; None if it does. Nothing else of it is kept while one waits."""
    async with as_asked(call, name) as status:
        if asked_of(call.caller, status) or questions_to(call.caller, status):
            return None
        return status.standing.seq if status.standing else 0
