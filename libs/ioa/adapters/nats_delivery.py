"""Pushes, results, timers and dead letters over NATS."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import Header
from nats.js.errors import APIError, NotFoundError

from ioa.adapters.nats_failures import lost_race, unavailable_unless_answered
from ioa.adapters.nats_topology import DEAD, RESULTS, TIMERS
from ioa.fault_points import is_armed, reach
from ioa.group.events import EncodedEntry
from ioa.group.requests import encode_sequenced
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, encode
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId

_log = structlog.get_logger(__name__)


class NatsInboxes:
    """Push entries over core NATS.

    Args:
        client: The connection.
        router: The name that a router is spoken to by. A push bears it as its reply subject: who appended the last entry of a
            group knows its head, and is asked first when somebody speaks next.
    """

    def __init__(self, client: Client, router: str = "") -> None:
        self._client = client
        self._router = router

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Publish the entry to each inbox; members that are away repair themselves from the log, and so does a lost push."""
        data = encode_sequenced(entry, seq=seq, previous_seq=previous_seq)
        try:
            for agent_id in audience:
                await self._client.publish(subjects.inbox(agent_id), data, reply=self._router)
                if is_armed("router.between_pushes"):
                    await self._client.flush()  # what was pushed has left the process
                    reach("router.between_pushes")
        except (nats.errors.Error, OSError) as error:
            _log.warning("push_lost", comm_id=entry.entry.state.comm_id, seq=seq, error=str(error) or type(error).__name__)


class NatsResults:
    """Results in the stream `IOA_RESULTS`: the first one published for a goal stands."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def publish(self, result: GoalResult) -> bool:
        """Publish unless there is one already."""
        data, headers = encode(result), {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: "0"}
        with unavailable_unless_answered("The stream of results"):
            try:
                await self._js.publish(subjects.result_of(result.goal_id), data, stream=RESULTS, headers=headers)
            except APIError as error:
                if not lost_race(error):
                    raise
                return False
        return True

    async def get(self, goal_id: GoalId) -> GoalResult | None:
        """Read a goal's result."""
        with unavailable_unless_answered("The stream of results"):
            try:
                message = await self._js.get_last_msg(RESULTS, subjects.result_of(goal_id))
            except NotFoundError:
                return None
        return decode(GoalResult, message.data or b"")


class NatsTimers:
    """Deadlines as scheduled messages (NATS ADR-51) in the stream `IOA_TIMERS`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Have JetStream send a message to the group's timer subject at `at`."""
        at = at.astimezone(UTC)
        headers = {
            Header.SCHEDULE.value: f"@at {at.strftime('%Y-%m-%dT%H:%M:%S.%f')}Z",
            Header.SCHEDULE_TARGET.value: subjects.timer(comm_id),
        }
        subject = subjects.timer_schedule(comm_id, int(at.timestamp() * 1000))
        with unavailable_unless_answered("The stream of timers"):
            await self._js.publish(subject, b"", stream=TIMERS, headers=headers)


class NatsDeadLetters:
    """The stream `IOA_DEAD`: the message as it came, with the reason in its headers."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def put(self, reason: str, why: str, *, subject: str, data: bytes) -> None:
        """Keep a refused message; of one too large to be kept whole, the beginning."""
        headers = {"Ioa-Reason": why.replace("\n", " ")[:1_000], "Ioa-Subject": subject, "Ioa-Bytes": str(len(data))}
        with unavailable_unless_answered("The dead-letter stream"):
            await self._js.publish(subjects.dead(reason), data[:MAX_PAYLOAD_BYTES], stream=DEAD, headers=headers)
        _log.warning("dead_letter", reason=reason, why=why, subject=subject)
