"""Outcomes of tasks in the stream `IOA_OUTCOMES`, with one subject per pool. The server keeps the newest of each subject.

A process that reads the stream from its first message has the same outcomes as all other readers, also after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, DeliverPolicy, Header

from ioa.adapters.nats.streams.follow import ordered
from ioa.adapters.nats.streams.topology import OUTCOMES
from ioa.adapters.nats.wire.renewal import until_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.outcomes import Outcome

_RETRY_SECONDS = 1.0
_WHAT = "The stream of outcomes"

_log = structlog.get_logger(__name__)


class NatsOutcomes:
    """The last outcomes of each pool, in one order for all readers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def put(self, outcome: Outcome, *, key: str) -> None:
        """Publish an outcome; the stream drops a repeated key."""
        with unavailable_unless_answered(_WHAT):
            await self._js.publish(
                subjects.outcome(outcome.pool), encode(outcome), stream=OUTCOMES, headers={Header.MSG_ID.value: key}
            )

    async def follow(self, add: Callable[[Outcome], None], forget: Callable[[], None]) -> None:
        """Pass every stored outcome and then each new one to `add`, in order, until cancelled.

        `forget` is called before the first outcome, and after each reconnect: all outcomes follow again.
        """
        everything = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
        while True:
            try:
                with until_renewal(self._client) as waits:
                    async with ordered(self._client, _WHAT, OUTCOMES, subjects.ANY_OUTCOME, everything) as subscription:
                        forget()
                        while True:
                            _pass_on(await waits.next(subscription.next_msg), add)
            except UnavailableError as error:
                _log.warning("outcomes_out_of_reach", error=error.message)
                await asyncio.sleep(_RETRY_SECONDS)


def _pass_on(message: Msg, add: Callable[[Outcome], None]) -> None:
    try:
        add(decode(Outcome, message.data))
    except IoaError as error:
        _log.error("outcome_unreadable", seq=message.metadata.sequence.stream, error=error.message)
