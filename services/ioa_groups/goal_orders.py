"""Goals as users publish them (stream `IOA_ORDERS`), taken through one durable consumer per user.

So one user's goals do not wait for another's, and `max_ack_pending` limits the open goals of a user. A consumer is created when its
user publishes a goal, and is read until the user has had no goal for a while. A plain subscription signals new goals at once; a
periodic read of the stream's subjects finds users whose signal was lost.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from ioa.adapters.nats.delivery.work_queue import SetAside, Work, consume
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import GOALS, ensure_intake, intake_consumer, intake_subjects
from ioa.adapters.nats.wire.connection import Connection
from ioa.adapters.nats.wire.subscriptions import Message, at_renewal, taking
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.concurrency import TaskGroup
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.ids import LOCAL, GoalName, UserId
from ioa.retry import until_available

_READ_EVERY_SECONDS = 2.0
_IDLE_SECONDS = 60.0
"""Time without goals after which a user's consumer is no longer read."""

_log = structlog.get_logger(__name__)


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

    client: Connection
    work: Work
    set_aside: SetAside
    most_open: int
    at_once: int
    _lines: dict[UserId, asyncio.Task[None]] = field(default_factory=dict)
    """The readers of the users' consumers."""
    _had_goals_at: dict[UserId, float] = field(default_factory=dict)
    """When the user of each line last had a goal, by the loop's time."""
    _is_checked: bool = True
    """Whether the consumers exist; after a reconnect, the server may have another store."""

    async def follow(self) -> None:
        """Take goals until cancelled."""
        async with TaskGroup() as group:

            def hear(message: Message) -> None:
                self._start(group, message.subject)

            async with taking(self.client, subjects.ANY_GOAL, hear), taking(self.client, subjects.ANY_ADDRESSED_GOAL, hear):
                with at_renewal(self.client, self._check_soon):
                    while True:
                        try:
                            await self._update(group)
                        except UnavailableError as error:
                            self._check_soon()
                            _log.warning("orders_unavailable", error=error.message)
                        await asyncio.sleep(_READ_EVERY_SECONDS)

    async def _update(self, group: asyncio.TaskGroup) -> None:
        """Start lines of users with goals, end lines of users without goals, and create consumers again after a reconnect."""
        for subject in (subjects.goal_of(LOCAL), *await Stream(self.client, GOALS).subject_counts()):
            self._start(group, subject)
        now = asyncio.get_running_loop().time()
        for user in [user for user, had_goals_at in self._had_goals_at.items() if now - had_goals_at > _IDLE_SECONDS]:
            del self._had_goals_at[user]
            self._lines.pop(user).cancel()
        if not self._is_checked:
            self._is_checked = True
            for user in [*self._lines]:
                await self._ensure_consumer(user)

    def _start(self, group: asyncio.TaskGroup, subject: str) -> None:
        """Start the line of the user who published on a subject, unless it exists."""
        try:
            user, _ = subjects.parse_goal_subject(subject)
        except InvalidInputError:
            return
        self._had_goals_at[user] = asyncio.get_running_loop().time()
        if user not in self._lines:
            self._lines[user] = group.create_task(self._take(user))

    async def _take(self, user: UserId) -> None:
        await until_available(
            lambda: self._ensure_consumer(user), lambda error: _log.warning("orders_unavailable", user=user, error=error.message)
        )
        name = intake_consumer(user)
        await consume(self.client, GOALS, name, self.work, set_aside=self.set_aside, max_concurrent=self.at_once)

    async def _ensure_consumer(self, user: UserId) -> None:
        with unavailable_unless_answered("The stream of goals"):
            await ensure_intake(self.client.jetstream(), user, self.most_open)

    def _check_soon(self) -> None:
        self._is_checked = False


class UnreadGoals:
    """Goals in the stream that intake has not accepted."""

    def __init__(self, client: Connection) -> None:
        self._stream = Stream(client, GOALS)

    async def contains(self, goal: GoalName) -> bool:
        """Whether a message of the goal's user has the goal's id."""
        for subject in intake_subjects(goal.user):
            async for message in self._stream.messages(subject):
                if find_goal_id(message.data) == goal.goal_id:
                    return True
        return False
