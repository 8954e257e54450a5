"""Open turns and questions of a goal for a caller, and waiting for a question or for the end of the goal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ioa.client.client import Client
from ioa.client.documents import OpenQuestion, open_questions
from ioa.client.shown_questions import question_in_words
from ioa.client.waiting import Awaited, AwaitedDocument, asked_in_words, open_turn, people_in
from ioa.errors import NotFoundError
from ioa.group.requests import GoalStatus
from ioa.group.state import GroupState
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.teams.team_file import person_of
from ioa_gateway.caller import Caller
from ioa_gateway.context import ApiCall

Document = Mapping[str, Any]


@dataclass(frozen=True)
class CallerStatus:
    """The status of a goal for a caller.

    Attributes:
        turns: Open turns of people that the caller may answer for.
        questions: Open questions of the goal's groups and tasks, if the caller is the goal's user.
    """

    status: GoalStatus
    turns: tuple[Awaited, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()

    @property
    def items(self) -> frozenset[str]:
        """The references of all open turns and questions."""
        return frozenset([*(one.item for one in self.turns), *(one.item for one in self.questions)])

    def in_words(self) -> list[tuple[str, AwaitedDocument | OpenQuestion]]:
        """Return all turns and questions with their texts; of all turns but the first only the beginning of the texts."""
        turns = [AwaitedDocument.of(one) for one in self.turns]
        turns[1:] = [one.begun() for one in turns[1:]]
        questions = [(question_in_words(one), one) for one in self.questions]
        return [*((asked_in_words(one), one) for one in turns), *questions]


def answer_schema(question: OpenQuestion) -> dict[str, Any]:
    """Return the JSON schema of an object with the answer to a question."""
    answer = {"type": "string", "default": question.default, **({"enum": list(question.options)} if question.options else {})}
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


def status_for(caller: Caller, status: GoalStatus, groups: Collection[GroupState] = ()) -> CallerStatus:
    """Return a status for a caller.

    Args:
        caller: The caller.
        status: The status; without a charter, the turns of people are missing.
        groups: The states of all groups of the goal; without them, questions of nested groups are missing.
    """
    if status.result is not None or status.standing is None:
        return CallerStatus(status)
    state, charter = status.standing.state, status.standing.charter
    turns, questions = list[Awaited](), list[OpenQuestion]()
    if charter is not None:
        seats = [one for one in people_in(state) if caller.answers_for(person_of(one))]
        turns += filter(None, [open_turn(charter, state, one) for one in seats])
    if _is_user(caller, status.record.goal.name):
        questions += [question for group in groups or [state] for question in open_questions(group)]
    return CallerStatus(status, tuple(turns), tuple(questions))


async def read_status(client: Client, caller: Caller, name: GoalName) -> CallerStatus:
    """Read the status of a goal.

    Raises:
        NotFoundError: There is no such goal.
    """
    status = await client.goal(name, with_team=bool(caller.people))
    has_nested = status.standing is not None and status.standing.state.nested
    return status_for(caller, status, (await client.state(name)).values() if has_nested else ())


async def follow_goal(
    call: ApiCall, name: GoalName, after: int | None = None, *, was_asked: bool = False
) -> AsyncGenerator[Document | CallerStatus | GoalResult | None, None]:
    """Yield the news of a goal until it ends: entries and progress reports as documents, and None instead of a heartbeat.

    After an entry since which the goal asks the caller something new, its status is yielded, and at last its result. The result
    is missing only if the gateway stops.

    Args:
        call: The request.
        name: The goal, which need not be accepted yet.
        after: The sequence of the last entry that the caller has; None: of the present last entry.
        was_asked: Whether the caller has the questions that are open after this entry.
    """
    caller, head, known = call.caller, 0, frozenset[str]()
    try:
        found = await read_status(call.client, caller, name)
    except NotFoundError:
        pass  # earlier goals of its user must end first
    else:
        head = found.status.standing.seq if found.status.standing else 0
        if after is None or head <= after:
            known = found.items
            if known and not was_asked:
                yield found
    async with aclosing(call.streams.documents(caller, name, head if after is None else after)) as documents:
        async for entry in documents:
            yield entry
            if entry is None or "seq" not in entry or entry["seq"] < head:
                continue
            if caller.answers_for_any(entry["floor"]) or (entry["questions"] and _is_user(caller, name)):
                found = await read_status(call.client, caller, name)
                if not found.items <= known:
                    known |= found.items
                    yield found
    if not call.streams.is_closing:
        yield await call.client.wait_for_result(name)


def _is_user(caller: Caller, name: GoalName) -> bool:
    """Whether the caller may answer as the user of a goal."""
    return Scope.GOALS_WRITE in caller.scopes and name.user == caller.user
