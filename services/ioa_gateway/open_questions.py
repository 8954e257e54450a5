"""Open questions of a goal to a caller, and waiting for a question or for the end of the goal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from ioa.client.client import Client
from ioa.client.documents import OpenQuestion, open_questions
from ioa.client.questions import question_in_words
from ioa.client.waiting import Awaited, AwaitedDocument, asked_in_words, open_turn, people_in
from ioa.errors import NotFoundError, UnavailableError
from ioa.group.goal_lists import GoalStatus
from ioa.group.state import GroupState
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.team import person_of
from ioa_gateway.caller import Caller
from ioa_gateway.context import ApiCall

Document = Mapping[str, Any]


def awaited_turns(caller: Caller, status: GoalStatus) -> list[Awaited]:
    """Return the open turns of people that the caller may answer for. The status is from `read_status`."""
    standing = status.standing
    if status.result is not None or standing is None or standing.charter is None:
        return []
    people = [one for one in people_in(standing.state) if caller.answers_for(person_of(one))]
    turns = [open_turn(standing.charter, standing.state, one) for one in people]
    return [one for one in turns if one is not None]


def questions_to(caller: Caller, status: GoalStatus) -> tuple[OpenQuestion, ...]:
    """Return the open questions of a goal's groups and their tasks, if the caller is the goal's user.

    Only a status from `read_status` contains nested groups.
    """
    standing = status.standing
    if status.result is not None or standing is None or not _is_user(caller, status.record.goal.name):
        return ()
    groups = status.groups if isinstance(status, StatusOfGroups) else ()
    return tuple([question for state in groups or (standing.state,) for question in open_questions(state)])


def questions_in_words(caller: Caller, status: GoalStatus) -> list[tuple[str, AwaitedDocument | OpenQuestion]]:
    """Return all open turns and questions with their texts; of all turns but the first only the beginning of the texts."""
    turns = [AwaitedDocument.of(one) for one in awaited_turns(caller, status)]
    turns[1:] = [one.begun() for one in turns[1:]]
    questions = [(question_in_words(one), one) for one in questions_to(caller, status)]
    return [*((asked_in_words(one), one) for one in turns), *questions]


def answer_schema(question: OpenQuestion) -> dict[str, Any]:
    """Return the JSON schema of an object with the answer to a question."""
    answer = {"type": "string", "default": question.default, **({"enum": list(question.options)} if question.options else {})}
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


class StatusOfGroups(GoalStatus):
    """The status of a goal, with the states of all its groups if it has nested groups."""

    groups: tuple[GroupState, ...] = ()


async def read_status(call: ApiCall, name: GoalName) -> StatusOfGroups:
    """Read the status of a goal, with the charter if the caller answers for people.

    Raises:
        NotFoundError: There is no such goal.
    """
    return await with_groups(call.client, name, await call.look(name, with_team=bool(call.caller.people)))


async def with_groups(client: Client, name: GoalName, status: GoalStatus) -> StatusOfGroups:
    """Return the status of a goal with the states of its nested groups."""
    has_nested = status.standing is not None and status.standing.state.nested
    groups = tuple((await client.state(name)).values()) if has_nested else ()
    return StatusOfGroups.model_construct(**dict(status), groups=groups)


async def follow_goal(
    call: ApiCall, name: GoalName, after: int | None = None, *, was_asked: bool = False
) -> AsyncGenerator[Document | GoalStatus | GoalResult | None, None]:
    """Yield the news of a goal until it ends: entries and progress reports as documents, and None instead of a heartbeat.

    After an entry since which the goal asks the caller something new, its status is yielded, and at last its result. The result
    is missing only if the gateway stops.

    Args:
        call: The request.
        name: The goal, which need not be accepted yet.
        after: The sequence of the last entry that the caller has; None: of the present last entry.
        was_asked: Whether the caller has the questions that are open after this entry.
    """
    known = frozenset[str]()
    try:
        status = await read_status(call, name)
    except NotFoundError:
        head = 0  # earlier goals of its user must end first
    else:
        head = status.standing.seq if status.standing else 0
        if after is None or head <= after:
            known = _items(call.caller, status)
            if known and not was_asked:
                yield status
    documents = call.streams.documents(call.caller, name, head if after is None else after)
    async with aclosing(documents):
        async for entry in documents:
            yield entry
            if entry is None or "seq" not in entry or entry["seq"] < head or not _may_ask(call.caller, name, entry):
                continue
            status = await read_status(call, name)
            if new := _items(call.caller, status) - known:
                known |= new
                yield status
    if not call.streams.is_closing:
        yield await call.client.wait_for_result(name)


async def wait_for_goal(call: ApiCall, name: GoalName) -> GoalStatus | GoalResult:
    """Wait until a goal ends or asks the caller something.

    Raises:
        UnavailableError: The gateway stops.
    """
    async with aclosing(follow_goal(call, name)) as news:
        async for one in news:
            if isinstance(one, GoalStatus | GoalResult):
                return one
    raise UnavailableError("The gateway is closing.", hint="Try again soon.")


def _is_user(caller: Caller, name: GoalName) -> bool:
    """Whether the caller may answer as the user of a goal."""
    return Scope.GOALS_WRITE in caller.scopes and name.user == caller.user


def _may_ask(caller: Caller, name: GoalName, entry: Document) -> bool:
    """Whether a goal may ask the caller something since an entry."""
    return caller.answers_for_any(entry["floor"]) or (bool(entry["questions"]) and _is_user(caller, name))


def _items(caller: Caller, status: GoalStatus) -> frozenset[str]:
    """Return the references of the open turns and questions."""
    return frozenset(one.item for _, one in questions_in_words(caller, status))
