"""Open questions of a goal to a caller: turns of people, and questions to the goal's user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import Any

from ioa.beside import beside
from ioa.client.questions import OpenQuestion, open_questions
from ioa.client.waiting import Awaited, AwaitedDocument, open_turn, people_in
from ioa.errors import NotFoundError
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.ids import AgentId, GoalName
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.team import person_of
from ioa_gateway.caller import Caller
from ioa_gateway.context import ApiCall


def awaited_people(caller: Caller, status: GoalStatus) -> list[AgentId]:
    """Return the people that have the floor in a goal and that the caller may answer for. The charter is not needed."""
    standing = status.standing
    if status.result is not None or standing is None:
        return []
    floor = standing.state.floor
    return [one for one in people_in(standing.state) if one in floor and caller.answers_for(person_of(one))]


def asked_of(caller: Caller, status: GoalStatus) -> list[Awaited]:
    """Return the open turns of people that the caller may answer for. The status must contain the charter."""
    standing = status.standing
    if standing is None or standing.charter is None:
        return []
    found = [open_turn(standing.charter, standing.state, one) for one in awaited_people(caller, status)]
    return [one for one in found if one is not None]


def asked_documents(found: Sequence[Awaited]) -> list[AwaitedDocument]:
    """Describe open turns: the first with its whole text, the others with the beginning of their texts."""
    documents = [AwaitedDocument.of(one) for one in found]
    return documents[:1] + [one.begun() for one in documents[1:]]


def questions_to(caller: Caller, status: GoalStatus) -> tuple[OpenQuestion, ...]:
    """Return the open questions of a goal's group and its tasks, if the caller is the goal's user."""
    standing = status.standing
    if status.result is not None or standing is None or not is_user(caller, status.record.goal.name):
        return ()
    return open_questions(standing.state)


def answer_schema(question: OpenQuestion) -> dict[str, Any]:
    """Return the JSON schema of an object with the answer to a question."""
    answer = {"type": "string", "default": question.default, **({"enum": list(question.options)} if question.options else {})}
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


def as_asked(call: ApiCall, name: GoalName) -> AbstractAsyncContextManager[GoalStatus]:
    """Read the status of a goal (`ApiCall.looking`), with the charter if `asked_of` needs it."""
    return call.looking(name, with_team=bool(call.caller.people))


def is_user(caller: Caller, name: GoalName) -> bool:
    """Whether the caller may answer as the user of a goal."""
    return Scope.GOALS_WRITE in caller.scopes and name.owner == caller.user


def may_ask(caller: Caller, name: GoalName, entry: Mapping[str, Any]) -> bool:
    """Whether a goal may ask the caller something since an entry, given as its document."""
    return caller.answers_for_any(entry["floor"]) or (not entry["depth"] and bool(entry["questions"]) and is_user(caller, name))


async def settled(call: ApiCall, name: GoalName, left: Callable[[], Awaitable[None]] | None = None) -> None:
    """Wait until a goal has ended or asks the caller something, or until `left` returns."""
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


async def next_question(call: ApiCall, name: GoalName) -> OpenQuestion | None:
    """Wait until a goal has ended or asks its user; return the question, or None if the goal has ended."""
    as_user = replace(call, caller=replace(call.caller, people=frozenset()))  # turns of people are not waited for
    while await call.client.result(name) is None:
        await settled(as_user, name)
        async with as_asked(as_user, name) as status:
            if asked := questions_to(call.caller, status):
                return asked[0]
    return None


async def _is_asked(call: ApiCall, name: GoalName) -> bool:
    """Wait until a goal asks the caller something; False if it has ended."""
    try:
        seq = await _asks_nothing_up_to(call, name)
    except NotFoundError:
        seq = 0  # earlier goals of its user must end first
    if seq is None:
        return True
    async with aclosing(call.streams.documents(call.caller, name, seq)) as documents:
        async for entry in documents:
            if entry is not None and may_ask(call.caller, name, entry) and await _asks_nothing_up_to(call, name) is None:
                return True
    return False


async def _asks_nothing_up_to(call: ApiCall, name: GoalName) -> int | None:
    """Return the sequence up to which a goal asks the caller nothing; None if it asks something."""
    async with as_asked(call, name) as status:
        if asked_of(call.caller, status) or questions_to(call.caller, status):
            return None
        return status.standing.seq if status.standing else 0
