"""Goals as users publish them (stream `IOA_ORDERS`), taken through one durable consumer per user.

So one user's goals do not wait for another's, and `max_ack_pending` limits the open goals of a user. A consumer is created when its
user publishes a goal and ends when the user has had none for a while. A plain subscription signals users without a consumer at
once; reading on in the stream finds users that it missed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from ioa.adapters.nats.delivery.work_queue import SetAside, Work, consume
from ioa.adapters.nats.streams.stream_reader import next_messages, pages
from ioa.adapters.nats.streams.topology import GOALS, ensure_intake, intake_consumer
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.sinks import taking
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.ids import LOCAL, AgentId, GoalName, UserId

_READ_EVERY_SECONDS = 2.0
_PAGE, _PAGE_BYTES = 256, 1_000_000
_IDLE_SECONDS = 60.0
"""Time without goals after which a user's consumer is no longer read."""
_CHECK_SECONDS = 30.0
"""Interval at which a consumer is created again in case it was removed, and asked for remaining goals."""

_log = structlog.get_logger(__name__)


@dataclass
class _Line:
    """The reader of a user's consumer. Times are the loop's."""

    task: asyncio.Task[None]
    busy_at: float
    checked_at: float


@dataclass
class OrderLines:
    """Take goals of all users.

    Attributes:
        client: The connection.
        work: Processes a goal; see `work_queue.consume`.
        set_aside: Keeps goals whose processing fails repeatedly.
        most_open: Maximum unacknowledged goals of a user.
        at_once: Maximum goals of a user that this process works on concurrently.
    """

    client: Client
    work: Work
    set_aside: SetAside
    most_open: int
    at_once: int
    _lines: dict[UserId, _Line] = field(default_factory=dict)
    _new: set[UserId] = field(default_factory=set)
    """Users with goals that have no line, or whose line may be idle."""
    _signal: asyncio.Event = field(default_factory=asyncio.Event)
    _read_up_to: int = 0

    async def follow(self) -> None:
        """Take goals until cancelled."""
        async with (
            taking(self.client, subjects.ANY_GOAL, self._hear),
            taking(self.client, subjects.ANY_ADDRESSED_GOAL, self._hear),
            TaskGroup() as group,
        ):
            with at_renewal(self.client, self._restart):
                while True:
                    try:
                        is_complete = await self._read_on()
                        await self._update_lines(group)
                    except UnavailableError as error:
                        is_complete = True
                        _log.warning("orders_unavailable", error=error.message)
                    with suppress(TimeoutError):
                        async with fail_after(_READ_EVERY_SECONDS if is_complete else 0):
                            await self._signal.wait()
                    self._signal.clear()

    def _hear(self, message: Msg) -> None:
        user = _consumer_user(message.subject)
        if user is not None and user not in self._lines:
            self._new.add(user)
            self._signal.set()

    def _restart(self) -> None:
        """Read the stream from its beginning: after a reconnect, the server may have another store."""
        self._read_up_to = 0

    async def _read_on(self) -> bool:
        """Read the users of a page of new goals; return whether it was the last page."""
        page = await next_messages(self.client, GOALS, ">", after=self._read_up_to, limit=_PAGE, max_bytes=_PAGE_BYTES)
        self._new.update(user for one in page.messages if (user := _consumer_user(one.subject)) is not None)
        self._read_up_to = page.messages[-1].seq if page.messages else self._read_up_to
        return page.complete

    async def _update_lines(self, group: asyncio.TaskGroup) -> None:
        """Start lines of users with goals, and end lines of users without goals."""
        now = asyncio.get_running_loop().time()
        for user in {LOCAL} | self._new | self._lines.keys():
            line = self._lines.get(user)
            if line is None:
                await self._create_consumer(user)
                taking = consume(
                    self.client,
                    GOALS,
                    intake_consumer(user),
                    self.work,
                    set_aside=self.set_aside,
                    max_concurrent=self.at_once,
                )
                line = self._lines[user] = _Line(group.create_task(taking), now, now)
            elif now - line.checked_at > _CHECK_SECONDS:
                line.checked_at = now
                if await self._create_consumer(user):
                    line.busy_at = now
            if user == LOCAL or user in self._new:
                line.busy_at = now
            self._new.discard(user)
        for user in [user for user, line in self._lines.items() if now - line.busy_at > _IDLE_SECONDS]:
            self._lines.pop(user).task.cancel()

    async def _create_consumer(self, user: UserId) -> bool:
        """Create a user's consumer, unless it exists; return whether it has goals."""
        with unavailable_unless_answered("The stream of goals"):
            consumer = await ensure_intake(self.client.jetstream(), user, self.most_open)
        return bool(consumer.num_pending or consumer.num_ack_pending)


class UnreadGoals:
    """Goals in the stream that intake has not accepted.

    Args:
        client: The connection.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def contains(self, goal: GoalName) -> bool:
        """Whether a message of the goal's user has the goal's id.

        Raises:
            UnavailableError: The stream does not answer.
        """
        for subject in _consumer_subjects(goal.owner):
            async for page in pages(self._client, GOALS, subject, limit=_PAGE):
                if any(find_goal_id(one.data) == goal.goal_id for one in page.messages):
                    return True
        return False


async def drop_orders(js: JetStreamContext, user: UserId) -> None:
    """Remove all published goals of a user, as an admin. Accepted goals are not affected.

    Raises:
        UnavailableError: The stream does not answer.
    """
    with unavailable_unless_answered("The stream of goals"):
        for subject in _consumer_subjects(user):
            await js.purge_stream(GOALS, subject=subject)


def _consumer_subjects(user: UserId) -> tuple[str, str]:
    return subjects.goal_of(user), subjects.goal_to(user, AgentId("*"))


def _consumer_user(subject: str) -> UserId | None:
    try:
        return subjects.parse_goal_subject(subject)[0]
    except InvalidInputError:
        return None
