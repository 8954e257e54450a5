"""Deciding about messages and deadlines: the same answer however often it is asked, and nothing for strangers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgpack
import pytest

from ioa.errors import ForbiddenError, InvalidInputError, PayloadTooLargeError
from ioa.group.events import Said, TimerFired
from ioa.group.requests import Accepted, SayReply
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, PoolId, SessionId, TaskId
from ioa.protocol.messages import (
    Discussion,
    InformTaskProgress,
    Message,
    Payload,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.subjects import say
from tests.unit.runtime.plane import ADA, BOB, ROOM, Plane, messages_of

T1 = TaskId("t1-1")


async def test_speaker_receives_entry_in_reply_and_no_push(opened: Plane) -> None:
    """The others are pushed what the speaker is answered with, each the same."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    reply = decode(SayReply, await opened.routers[0].say(say(PoolId(ADA), ADA, ROOM), encode(message))).answer
    assert isinstance(reply, Accepted)
    assert (list(opened.inboxes.of(BOB)[1:]), list(opened.inboxes.of(ADA)[1:])) == ([reply.entry], [])


async def test_a_message_sent_many_times_at_once_is_one(opened: Plane) -> None:
    """Twenty copies of one message over two replicas leave one entry, and each is accepted with its sequence."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    answers = await asyncio.gather(*(opened.send(message, number % 2) for number in range(20)))
    entries = await opened.entries()
    assert [answer.seq for answer in answers if isinstance(answer, Accepted)] == [entries[-1].seq] * 20
    assert messages_of(entries) == [message.header.message_id]


async def test_no_entry_holds_a_draft(opened: Plane) -> None:
    """Whoever follows hears of it; a report that has to be an entry goes into the log without it, whoever sent it so."""
    await opened.says(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=T1, assignee=BOB, task_desc="tell a story"),)))
    for number in (1, 2):
        await opened.says(BOB, InformTaskProgress(task_id=T1, number=number, draft="Once upon"))
    told = [entry.entry.event.message.payload for entry in await opened.entries() if isinstance(entry.entry.event, Said)]
    heard = [said.message.payload for said in opened.progress.reports]
    assert told[1:] == [InformTaskProgress(task_id=T1, number=1)]
    assert heard == [InformTaskProgress(task_id=T1, number=2, draft="Once upon")]


@pytest.mark.parametrize(("comm_id", "sender"), [(ROOM, "bob"), ("gother", "ada")])
async def test_message_in_name_of_other_agent_is_rejected(opened: Plane, comm_id: str, sender: str) -> None:
    """A payload that names another sender or group than its subject is forbidden."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    with pytest.raises(ForbiddenError):
        await opened.routers[0].say(f"ioa.v1.agent.{sender}.{sender}.say.{comm_id}", encode(message))
    assert len(await opened.entries()) == 1


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"", InvalidInputError), (b"\xc1", InvalidInputError), (b"\xc1" * 512_001, PayloadTooLargeError)],
    ids=["empty", "garbage", "too large"],
)
async def test_unreadable_message_is_rejected(data: bytes, error: type[Exception]) -> None:
    """A payload that is no message, or that is larger than a message may be, is the caller's fault."""
    with pytest.raises(error):
        await Plane().routers[0].say(say(PoolId(ADA), ADA, ROOM), data)


async def test_two_timers_at_once_act_once(opened: Plane) -> None:
    """Both replicas may be woken for one deadline; one of them acts."""
    opened.clock.advance(timedelta(seconds=60))
    await asyncio.gather(*(router.fire_timer(ROOM) for router in opened.routers))
    fired = [stored for stored in await opened.entries() if isinstance(stored.entry.event, TimerFired)]
    assert (len(fired), (await opened.state()).floor_holder) == (1, BOB)


@pytest.mark.parametrize("told", ["no id!", 5])
async def test_what_is_no_session_is_refused_by_its_field(opened: Plane, told: object) -> None:
    """Also where nobody holds the speaker's id."""
    message = (await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))).model_dump(mode="json")
    message["header"]["session"] = told
    with pytest.raises(InvalidInputError, match=r"header\.session: "):
        await opened.routers[0].say(say(PoolId(ADA), ADA, ROOM), msgpack.packb(message))


async def test_pushed_entry_does_not_contain_the_session(opened: Plane) -> None:
    """Who has an agent's key could take its id by that. It stands in no entry and no report."""

    async def from_a_process(agent_id: AgentId, payload: Payload) -> Message:
        message = await opened.message(agent_id, payload)
        return message.model_copy(update={"header": message.header.model_copy(update={"session": SessionId("process-1")})})

    await opened.send(await from_a_process(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=T1, assignee=BOB, task_desc="tell"),))))
    for number in (1, 2):
        await opened.send(await from_a_process(BOB, InformTaskProgress(task_id=T1, number=number)))
    assert not [one for one in await opened.entries() if b"process-1" in encode(one.entry)]
    assert [said.message.header.session for said in opened.progress.reports] == [None]
