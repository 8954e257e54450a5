"""Taking goals in as users publish them, those of each user apart, so that nobody's goal waits behind all of another's.

Each user has a durable consumer of his own on the stream, so that his orders are given out in their order whatever others have
published, and only so many of them until one has ended. It is made when there is something for it, and goes when nothing has been
for a while. Who publishes stands in the subject; that somebody does is seen by listening to a single message now and then, which no
flood makes more of, and for certain by reading on in the stream. It would list its subjects too, but in one message, which whoever
publishes makes as long as he likes: each addressee is one, and who is sent more than 8 MB at once is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext

from ioa.adapters.nats.delivery.work_queue import Delivery, SetAside, Work, consume
from ioa.adapters.nats.streams.stream_reader import next_messages, pages
from ioa.adapters.nats.streams.topology import GOALS, INTAKE, ensure_intake, intake_consumer
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.sinks import MessageSink
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.ids import LOCAL, AgentId, GoalName, UserId

_LOOK_SECONDS = 2.0
"""How often it is read whose goals have come, at least."""
_PAGE, _PAGE_BYTES, _PAGES_AT_ONCE = 256, 1_000_000, 8
"""How much of the stream is read at a time, and how many times one after the other, before there is a pause."""
_PAUSE_SECONDS = 0.1
"""How long nobody listens after a message was heard."""
_IDLE_SECONDS = 60.0
"""How long a user without goals is listened to all the same."""
_LEAST_SECONDS = 0.04
"""How long an order keeps its place among those of its user that are worked on, however soon it is done with: what cannot be read
takes a millisecond, and a user can publish more of that than all others together."""
_MADE_AGAIN_SECONDS = 30.0
"""How often a consumer is made that is there, since somebody may have removed it, and asked whether goals are left in it."""
_log = structlog.get_logger(__name__)


@dataclass
class _Line:
    """The orders of one user. Times are the loop's."""

    task: asyncio.Task[None]
    busy_at: float
    made_at: float


@dataclass
class OrderLines:
    """Does `work` for each order, for ever; see `queues.consume`.

    Attributes:
        client: The connection.
        work: What is done for an order.
        set_aside: Keeps poison.
        most_open: How many orders of one user may be unacknowledged at a time.
        at_once: How many of those this process works on side by side.
    """

    client: Client
    work: Work
    set_aside: SetAside
    most_open: int
    at_once: int
    _lines: dict[UserId, _Line] = field(default_factory=dict)
    _come: set[UserId] = field(default_factory=set)
    """Whose goals were read of for whom there is no line yet."""
    _read_up_to: int = 0

    async def follow(self) -> None:
        """Take orders, for ever."""
        with at_renewal(self.client, self._begin_again):
            async with TaskGroup() as group:
                while True:
                    async with self._listening() as heard:
                        try:
                            is_whole = await self._read_on()
                            await self._look(group)
                            with suppress(TimeoutError):
                                async with fail_after(_LOOK_SECONDS if is_whole else 0):
                                    self._come.add(await heard)
                            await self._look(group)
                        except UnavailableError as error:
                            _log.warning("orders_out_of_reach", error=error.message)
                    await asyncio.sleep(_PAUSE_SECONDS)

    def _begin_again(self) -> None:
        """Read the stream from its beginning: the server may have come back with another one."""
        self._read_up_to = 0

    async def _read_on(self) -> bool:
        """Read whose goals have come since the last time; whether that is all: when this begins it may be half a gigabyte."""
        for _ in range(_PAGES_AT_ONCE):
            page = await next_messages(self.client, GOALS, ">", after=self._read_up_to, limit=_PAGE, max_bytes=_PAGE_BYTES)
            self._come.update(user for one in page.messages if (user := _user_of(one.subject)) is not None)
            self._read_up_to = page.messages[-1].seq if page.messages else self._read_up_to
            if page.complete:
                return True
        return False

    async def _look(self, group: asyncio.TaskGroup) -> None:
        """Take orders of those whose goals have come, and no more of those who have had none for a while."""
        now = asyncio.get_running_loop().time()
        for user in {LOCAL} | self._come | self._lines.keys():
            line = self._lines.get(user)
            is_due = line is None or now - line.made_at > _MADE_AGAIN_SECONDS
            has_some = is_due and await self._make(user)
            if line is None:
                durable = intake_consumer(user)
                work = self.work if user == LOCAL else self._work_in_its_time
                taking = consume(self.client, GOALS, durable, work, set_aside=self.set_aside, max_concurrent=self.at_once)
                line = self._lines[user] = _Line(group.create_task(taking), now, now)
            elif is_due:
                line.made_at = now
            if has_some or user == LOCAL or user in self._come:
                line.busy_at = now
            self._come.discard(user)
        for user in [user for user, line in self._lines.items() if now - line.busy_at > _IDLE_SECONDS]:
            self._lines.pop(user).task.cancel()

    async def _make(self, user: UserId) -> bool:
        """Make the queue of a user's goals, unless it is there; whether it holds any."""
        with unavailable_unless_answered("The stream of goals"):
            queue = await ensure_intake(self.client.jetstream(), user, self.most_open)
        return bool(queue.num_pending or queue.num_ack_pending)

    async def _work_in_its_time(self, delivery: Delivery) -> None:
        started = asyncio.get_running_loop().time()
        await self.work(delivery)
        await asyncio.sleep(max(0.0, started + _LEAST_SECONDS - asyncio.get_running_loop().time()))

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[asyncio.Future[UserId]]:
        """Yield who is the next to publish a goal, if he is heard."""
        heard: asyncio.Future[UserId] = asyncio.get_running_loop().create_future()
        standing: list[Subscription] = []

        def hear(message: Msg) -> None:
            user = _user_of(message.subject)
            if user is not None and not heard.done():
                heard.set_result(user)

        try:
            for subject in (subjects.ANY_GOAL, subjects.ANY_ADDRESSED_GOAL):
                with suppress(nats.errors.Error, OSError):
                    standing.append(await self.client.subscribe(subject, queue=INTAKE, future=MessageSink(hear)))
                    await standing[-1].unsubscribe(limit=1)
            yield heard
        finally:
            heard.cancel()
            for subscription in standing:
                with suppress(nats.errors.Error, OSError):
                    await subscription.unsubscribe()


class UnreadGoals:
    """Goals that users have published and intake has not read yet, in the stream `IOA_GOALS`.

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
        for subject in (subjects.goal_of(goal.owner), subjects.goal_to(goal.owner, AgentId("*"))):
            async for page in pages(self._client, GOALS, subject, limit=_PAGE):
                if any(find_goal_id(one.data) == goal.goal_id for one in page.messages):
                    return True
        return False


async def drop_orders(js: JetStreamContext, user: UserId) -> None:
    """Remove all orders of a user, of which those that were taken in are goals already. For admins.

    Raises:
        UnavailableError: The stream does not answer.
    """
    with unavailable_unless_answered("The stream of goals"):
        for subject in (subjects.goal_of(user), subjects.goal_to(user, AgentId("*"))):
            await js.purge_stream(GOALS, subject=subject)


def _user_of(subject: str) -> UserId | None:
    try:
        return subjects.parse_goal_subject(subject)[0]
    except InvalidInputError:
        return None
