"""Routes of seats: open turns of people, the messages that they received, and their answers."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import suppress
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import Field

from ioa.client.documents import Instant
from ioa.client.seat import PersonReply
from ioa.client.waiting import Awaited, AwaitedDocument, waiting_for_people
from ioa.errors import ForbiddenError
from ioa.group.requests import no_group
from ioa.protocol.api_keys import ANYBODY
from ioa.protocol.ids import AgentId, CommId, CommIdField, GoalId, UserId
from ioa.protocol.labels import bears
from ioa.protocol.messages import Discussion, Message
from ioa.protocol.model import Instruction, Model
from ioa.protocol.policy import FieldValue
from ioa_gateway.context import MAX_ITEMS, ApiCall, SeatsCall
from ioa_gateway.request_body import JsonRoute

_MAX_TURN = 999_999_999
_MOST_HEARD = 500

router = APIRouter(route_class=JsonRoute)


class WaitingDocument(Model):
    """What waits for people, with texts as they begin, and whether more does than fits; `HeardDocument` tells one thing whole."""

    more: bool
    waiting: tuple[AwaitedDocument, ...]


class SaidDocument(Model):
    """What somebody has said: its words, and what it has filled in or chosen besides."""

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
        header, said = message.header, message.payload
        return cls(
            sender=header.sender,
            type=said.type,
            turn=header.turn,
            at=header.sent_at,
            content=getattr(said, "content", ""),
            fields=dict(said.fields) if isinstance(said, Discussion) else {},
            choice=getattr(said, "choice", ""),
        )


class HeardDocument(Model):
    """A group as one of its people knows it; `heard` is the last that was said, and `waiting` what is up to that person."""

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
    """An answer: words, what is chosen, and what is filled in, as it is written; or that there is none."""

    text: Annotated[str, Field(max_length=100_000, description="taken as it is, byte for byte")] = ""
    choose: Annotated[str, Field(max_length=2_000, description="an option, a way out, or who speaks next")] | None = None
    fields: Annotated[dict[str, Annotated[str, Field(max_length=20_000)]], Field(max_length=64, default_factory=dict)]
    passes: Annotated[bool, Field(description="say nothing, or leave a decision to its default")] = False


class SayOrder(Instruction):
    """Who answers in which turn, and what."""

    seat: Annotated[str, Field(max_length=64, description="the person's name")]
    turn: Annotated[int, Field(ge=0, le=_MAX_TURN)]
    payload: ReplyOrder


class SaidAt(Model):
    """Where what was said stands in the log."""

    seq: int


@router.get("/seats")
async def anybody(call: SeatsCall) -> WaitingDocument:
    """List the open turns of all people that the caller may answer for."""
    waiting = list[AwaitedDocument]()
    async with call.page_read():
        if ANYBODY in call.caller.people:
            waiting += await _seen(call, waiting_for_people(call.client))
        else:
            for person in sorted(call.caller.people):
                with suppress(ForbiddenError):  # the gateway has no key of this seat
                    async with call.seat(person) as seat:
                        waiting += await _seen(call, seat.awaited())
    return _waiting(waiting)


@router.get("/seats/{name}")
async def show(call: SeatsCall, name: str) -> WaitingDocument:
    """List the open turns of a person."""
    async with call.seat(name) as seat:
        return _waiting(await _seen(call, seat.awaited()))


@router.get("/seats/{name}/groups/{comm_id}")
async def heard(call: SeatsCall, name: str, comm_id: CommIdField) -> HeardDocument:
    """Show a group as one of its people sees it."""
    async with call.seat(name) as seat:
        history = await seat.heard(comm_id)
        waits = seat.awaited_in(history)
    state, charter = history.state, history.charter
    if not bears(charter.labels, call.caller.labels):
        raise no_group(comm_id)
    return HeardDocument(
        comm_id=comm_id,
        goal_id=state.goal_id,
        user=state.user,
        goal=charter.goal,
        phase=str(state.phase),
        turn=state.turn,
        members=tuple(member.agent_id for member in state.members),
        heard=tuple(map(SaidDocument.of, history.messages()[-_MOST_HEARD:])),
        waiting=None if waits is None else AwaitedDocument.of(waits),
    )


@router.post("/groups/{comm_id}/messages", status_code=201)
async def answer(call: SeatsCall, comm_id: CommIdField, order: SayOrder) -> SaidAt:
    """Answer for a person. The first answer counts; repeating it is idempotent, at any replica."""
    async with call.seat(order.seat) as seat:
        if call.caller.labels:
            history = await seat.heard(comm_id)
            if not bears(history.charter.labels, call.caller.labels):
                raise no_group(comm_id)
        seq = await seat.answer(f"{comm_id}.{order.turn}", PersonReply(**dict(order.payload)))
    return SaidAt(seq=seq)


async def _seen(call: ApiCall, found: AsyncIterable[Awaited]) -> list[AwaitedDocument]:
    """Return documents of the turns that the caller may see. The turns contain policies of megabytes."""
    return [AwaitedDocument.of(one).begun() async for one in found if bears(one.charter.labels, call.caller.labels)]


def _waiting(found: list[AwaitedDocument]) -> WaitingDocument:
    return WaitingDocument(more=len(found) > MAX_ITEMS, waiting=tuple(found[:MAX_ITEMS]))
