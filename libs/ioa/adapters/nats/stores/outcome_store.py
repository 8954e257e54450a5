"""Outcomes of tasks in the stream `IOA_OUTCOMES`, with one subject per pool. The server keeps the newest of each subject.

A process that reads the stream from its first message has the same outcomes as all other readers, also after a restart.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import DeliverPolicy, Header

from ioa.adapters.nats.streams.follow import follow
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import OUTCOMES
from ioa.errors import IoaError
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import Outcome
from ioa.protocol.codec import decode, encode

_log = structlog.get_logger(__name__)


class NatsOutcomes:
    """The last outcomes of each pool, in one order for all readers."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, OUTCOMES)

    async def put(self, outcome: Outcome, *, key: str) -> None:
        """Publish an outcome; the stream drops a repeated key."""
        await self._stream.publish(subjects.outcome(outcome.pool), encode(outcome), {Header.MSG_ID.value: key})

    async def follow(self, add: Callable[[Outcome], None], forget: Callable[[], None]) -> None:
        """Pass every stored outcome and then each new one to `add`, in order, until cancelled.

        `forget` is called before the first outcome, and after each interruption: all outcomes follow again.
        """
        read = follow(self._stream.client, OUTCOMES, subjects.ANY_OUTCOME, DeliverPolicy.ALL, _read_outcome)
        async for outcomes, is_snapshot in read:
            if is_snapshot:
                forget()
            for outcome in outcomes:
                if outcome is not None:
                    add(outcome)


def _read_outcome(message: Msg) -> Outcome | None:
    try:
        return decode(Outcome, message.data)
    except IoaError as error:
        _log.error("outcome_unreadable", seq=message.metadata.sequence.stream, error=error.message)
        return None
