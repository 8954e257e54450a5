"""Routes of people: their open turns, the messages that they received, and their answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import Field

from ioa.client.documents import Instant
from ioa.client.seat import PersonReply
from ioa.client.waiting import Awaited, AwaitedDocument, waiting_for_people
from ioa.errors import ForbiddenError
from ioa.protocol.goals import bears
from ioa.protocol.ids import AgentId, CommId, CommIdField, GoalId, UserId
from ioa.protocol.messages import Message
from ioa.protocol.model import Instruction, Model
from ioa.protocol.operation.api_keys import ALL_PEOPLE
from ioa.protocol.policy_parts import FieldValue
from ioa_gateway.context import MAX_ITEMS, ApiCall, SeatsCall

_MAX_TURN = 999_999_999
_MAX_HEARD = 500

router = APIRouter()


class WaitingDocument(Model):
    """Open turns of people, with shortened texts; `more` means that turns were left out. `HeardDocument` has the whole text."""

    more: bool
    waiting: tuple[AwaitedDocument, ...]


class SaidDocument(Model):
    """A message of a group: its text, fields and choice."""

    sender: AgentId
    type: str
    turn: int
    at: Instant
    content: str
    fields: dict[str, FieldValue]
    choice: str

    @classmethod
    def of(cls, message: Message) -> Self:
        """Describe a message."""
        absent = {"content": "", "fields": {}, "choice": ""}
        return cls.model_validate({**absent, **dict(message.header), **dict(message.payload), "at": message.header.sent_at})


class HeardDocument(Model):
    """A group as a person sees it: `heard` contains the last messages, and `waiting` the open turn of the person."""

    comm_id: CommId
    goal_id: GoalId
    user: UserId | None
    goal: str
    phase: str
    turn: int
    members: tuple[AgentId, ...]
    heard: tuple[SaidDocument, ...]
    waiting: AwaitedDocument | None


class ReplyOrder(Instruction):
    """An answer of a person: a text, a choice and fields, or a pass."""

    text: Annotated[str, Field(max_length=100_000, description="the text, stored unchanged")] = ""
    choose: Annotated[str, Field(max_length=2_000, description="an option, an exit, or the next speaker")] | None = None
    fields: Annotated[dict[str, Annotated[str, Field(max_length=20_000)]], Field(max_length=64, default_factory=dict)]
    passes: Annotated[bool, Field(description="pass the turn, or leave a decision to its default")] = False


class SayOrder(Instruction):
    """The answer of a person in a turn."""

    seat: Annotated[str, Field(max_length=64, description="the person's name")]
    turn: Annotated[int, Field(ge=0, le=_MAX_TURN)]
    payload: ReplyOrder


class SaidAt(Model):
    """The sequence of a message in the log."""

    seq: int


@router.get("/seats")
async def anybody(call: SeatsCall) -> WaitingDocument:
    """List the open turns of all people that the key answers for."""
    if ALL_PEOPLE in call.caller.people:
        return _describe(await _visible(call, waiting_for_people(call.client)))
    turns = list[AwaitedDocument]()
    for person in sorted(call.caller.people):
        with suppress(ForbiddenError):  # the gateway has no key of this seat
            turns += await _turns(call, person)
    return _describe(turns)


@router.get("/seats/{name}")
async def show(call: SeatsCall, name: str) -> WaitingDocument:
    """List the open turns of a person."""
    return _describe(await _turns(call, name))


async def _turns(call: ApiCall, person: str) -> list[AwaitedDocument]:
    async with call.seat(person) as seat:
        return await _visible(call, seat.awaited())


async def _visible(call: ApiCall, turns: AsyncIterator[Awaited]) -> list[AwaitedDocument]:
    """Return documents of the turns that the caller may see. The turns contain policies of megabytes."""
    return [AwaitedDocument.of(turn).begun() async for turn in turns if bears(turn.charter.labels, call.caller.labels)]


def _describe(turns: list[AwaitedDocument]) -> WaitingDocument:
    return WaitingDocument(more=len(turns) > MAX_ITEMS, waiting=tuple(turns[:MAX_ITEMS]))


@router.get("/seats/{name}/groups/{comm_id}")
async def heard(call: SeatsCall, name: str, comm_id: CommIdField) -> HeardDocument:
    """Show a group as a person sees it."""
    async with call.seat(name) as seat:
        history = await seat.heard(comm_id)
        turn = seat.awaited_in(history)
    call.check_labels(comm_id, history.charter)
    return HeardDocument.model_validate(
        {
            **dict(history.state),
            "goal": history.charter.goal,
            "phase": str(history.state.phase),
            "members": [member.agent_id for member in history.state.members],
            "heard": [*map(SaidDocument.of, history.messages()[-_MAX_HEARD:])],
            "waiting": None if turn is None else AwaitedDocument.of(turn),
        }
    )


@router.post("/groups/{comm_id}/messages", status_code=201)
async def answer(call: SeatsCall, comm_id: CommIdField, order: SayOrder) -> SaidAt:
    """Answer for a person. The first answer counts; repeating it is idempotent, at any replica."""
    async with call.seat(order.seat) as seat:
        if call.caller.labels:
            call.check_labels(comm_id, (await seat.heard(comm_id)).charter)
        return SaidAt(seq=await seat.answer(f"{comm_id}.{order.turn}", PersonReply(**dict(order.payload))))
