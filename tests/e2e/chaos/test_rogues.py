"""Members that break every rule: they are refused by name, and the group goes on without them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, PayloadTooLargeError, row_of
from ioa.group.requests import Accepted, Entries, ListMemberships, OpenMemberships, Rejected, SayReply, Sync
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, PoolId, TaskId
from ioa.protocol.messages import Discussion, Header, InformTaskResult, Message, Payload, Phase
from ioa.protocol.registry import Lease, Renew
from ioa.runtime.process import background
from tests.e2e.chaos.conftest import QUICK
from tests.integration.control_plane.conversation import Caller
from tests.rig.fleet import CONTROL_PLANE, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

ROGUE, ADA, BOB = AgentId("rogue"), AgentId("load-0"), AgentId("load-1")
_IMPATIENT = {**QUICK, "IOA_FLOOR_TIMEOUT": "3", "IOA_TASK_LEASE": "1"}


@pytest.fixture
async def impatient(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A system that waits a few seconds for anybody; half its agents say everything twice and fail at every task."""
    async with open_fleet(nats_server.url, tmp_path / "fleet", _IMPATIENT) as fleet:
        await fleet.start(*CONTROL_PLANE, WORKERS[0])
        await fleet.start(WORKERS[1], env={"IOA_LOAD_TWICE": "true", "IOA_LOAD_RAISES": "true"})
        await fleet.until_online()
        yield fleet


def _message(comm_id: CommId, payload: Payload, *, turn: int = 1, sender: AgentId = ROGUE, message_id: str = "m-1") -> Message:
    header = Header(
        message_id=MessageId(message_id),
        comm_id=comm_id,
        sender=sender,
        state=Phase.DISCUSSING,
        turn=turn,
        after=0,
        sent_at=datetime.now(UTC),
    )
    return Message(header=header, payload=payload)


async def _stay(caller: Caller) -> None:
    """Keep the rogue's lease, and pretend that it follows its groups: it is at the end of each, whatever that says."""
    while True:
        await caller.ask(subjects.agent(PoolId(ROGUE), ROGUE, subjects.RENEW), Renew(agent_id=ROGUE), Lease)
        mine = await caller.ask(
            subjects.agent(PoolId(ROGUE), ROGUE, subjects.MEMBERSHIPS), ListMemberships(agent_id=ROGUE), OpenMemberships
        )
        for one in mine.memberships:
            head = (
                await caller.ask(
                    subjects.agent(PoolId(ROGUE), ROGUE, subjects.SYNC), Sync(comm_id=one.comm_id, agent_id=ROGUE), Entries
                )
            ).head
            await caller.ask(
                subjects.agent(PoolId(ROGUE), ROGUE, subjects.SYNC), Sync(comm_id=one.comm_id, agent_id=ROGUE, after=head), Entries
            )
        await asyncio.sleep(0.5)


async def _answer_to(fleet: Fleet, subject: str, data: bytes) -> type[IoaError] | None:
    """The error that raw bytes on a subject are answered with."""
    reply = await fleet.client.request(subject, data, timeout=5)
    code = (reply.headers or {}).get("Nats-Service-Error-Code")
    return {row_of(error).wire_code: error for error in (ForbiddenError, InvalidInputError, PayloadTooLargeError)}.get(code or "")


async def test_a_group_gets_over_a_rogue(impatient: Fleet) -> None:
    """Garbage, floods, forgeries, other turns, copies and late results are answered as they deserve; silence is passed over."""
    caller, requester = Caller(impatient.client), NatsRequester(impatient.client)
    await caller.register(ROGUE)
    async with background(_stay(caller)):
        await impatient.publish(GoalId("with-rogue"), "mixed", agent=ROGUE)
        comm_id = (await caller.launch(GoalId("with-rogue"), ROGUE, ADA, BOB)).state.comm_id
        own, talk = subjects.say(PoolId(ROGUE), ROGUE, comm_id), Discussion(content="Mine.", next_speaker=ADA)

        # First of all, while its turn lasts.
        other_turn = (await requester.request(own, _message(comm_id, talk, turn=7), SayReply)).answer
        copies = await asyncio.gather(
            *(requester.request(own, _message(comm_id, talk), SayReply) for _ in range(8))
        )  # while its turn lasts, which is a second
        refused = [
            await _answer_to(impatient, own, b"\xc1garbage"),
            await _answer_to(impatient, own, b"x" * 600_000),
            await _answer_to(impatient, own, encode(_message(comm_id, talk, sender=ADA))),
            await _answer_to(impatient, subjects.say(PoolId(ADA), ADA, comm_id), encode(_message(comm_id, talk))),
        ]
        late = InformTaskResult(task_id=TaskId("t9"), task_conclusion="Never asked for.")
        never_given = (await requester.request(own, _message(comm_id, late, message_id="m-2"), SayReply)).answer
        await impatient.publish_mix(10, seed=70)
        evidence = await impatient.evidence(within=timedelta(seconds=60))

    assert refused == [InvalidInputError, PayloadTooLargeError, ForbiddenError, ForbiddenError]
    assert [answer.code for answer in (other_turn, never_given) if isinstance(answer, Rejected)] == ["stale_turn", "unknown_task"]
    places = [copy.answer.seq for copy in copies if isinstance(copy.answer, Accepted)]
    assert (len(places), len(set(places))) == (8, 1)
    assert check(evidence) == []
