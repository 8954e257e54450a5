"""What became of goals that were launched here, where nothing is kept of one that was refused.

Group setup keeps a result of what it refuses, as far as there is room for more of its user; of the rest nothing tells. But who has
launched a goal knows its place in the stream of goals, where it stays until it is on record or has ended. So a goal that waits
there no more, and is nowhere else, was refused. That is read from any replica of a stream, which may lag: it is believed when it is
so again after a moment. Nothing is stored for it, so that nobody fills anything by goals that are refused.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.direct_gets import read_stream
from ioa.adapters.nats.topology import GOALS
from ioa.adapters.system_clock import SystemClock
from ioa.errors import ForbiddenError, InvalidInputError, IoaError
from ioa.ports.clock import Clock
from ioa.protocol import subjects
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import CommId, GoalName
from ioa.protocol.stream_reads import ReadStream

_FIRST_LOOK, _LONGEST_PAUSE = 0.5, 15.0
"""After how many seconds a goal is looked for that is not known to be on record, and how long apart at most."""
_APART, _LONGEST_APART = 0.05, 60.0
"""How many seconds looks are apart on average, and those for one goal at most: a gateway may have thousands that wait, each
read whole. Most of them nobody asks about, and one user's are not to have another wait for ever."""
_BELIEVED_AFTER = 3.0
"""For so many seconds it is nowhere before that is believed."""
_MOST_REMEMBERED = 10_000
_REFUSED = (
    "The goal was not accepted: it waits no more, and nothing else is kept of it. So are goals refused whose user has too much"
    " kept or waiting already; `ioa dead` may show it, with the reason."
)

_log = structlog.get_logger(__name__)


@dataclass
class _Order:
    """A goal as it was published. Times are the loop's.

    Attributes:
        seq: Its place in the stream of goals.
        look_at: When to look for it next.
        pause: How long after that it is looked for again.
        gone_since: Since when it waits no more.
        refused: What its launcher is told, once that is known.
    """

    seq: int
    look_at: float
    pause: float = _FIRST_LOOK
    gone_since: float | None = None
    refused: GoalResult | None = None


class LaunchedGoals:
    """Goals that were launched here, until it is known that they are on record.

    Args:
        client: The connection.
        is_kept: Tells whether a goal is on record, has a result, or had one.
        clock: Stamps what is told.
    """

    def __init__(self, client: Client, is_kept: Callable[[GoalName], Awaitable[bool]], clock: Clock | None = None) -> None:
        self._client = client
        self._is_kept = is_kept
        self._clock = clock or SystemClock()
        self._orders: OrderedDict[CommId, _Order] = OrderedDict()

    def note(self, goal: GoalName, seq: int) -> None:
        """Remember where a goal was stored; those that were launched last are."""
        self._orders[goal.comm_id] = _Order(seq, asyncio.get_running_loop().time() + self._at_least(_FIRST_LOOK))
        self._orders.move_to_end(goal.comm_id)
        if len(self._orders) > _MOST_REMEMBERED:
            self._orders.popitem(last=False)

    def forget(self, goal: GoalName) -> None:
        """Look for a goal no more: it is known to be kept."""
        self._orders.pop(goal.comm_id, None)

    def look_in(self, goal: GoalName) -> float | None:
        """Return after how many seconds to ask for a refusal; None: never."""
        order = self._orders.get(goal.comm_id)
        if order is None:
            return None
        return 0.0 if order.refused is not None else max(0.0, order.look_at - asyncio.get_running_loop().time())

    async def refusal(self, goal: GoalName) -> GoalResult | None:
        """Return what there is to tell of a goal that was refused; None of one that was not, or that nobody launched here."""
        order, now = self._orders.get(goal.comm_id), asyncio.get_running_loop().time()
        if order is None or order.refused is not None or now < order.look_at:
            return None if order is None else order.refused
        order.look_at, order.pause = now + self._at_least(order.pause), min(2 * order.pause, _LONGEST_PAUSE)
        try:
            await self._look(goal, order, now)
        except ForbiddenError as error:
            _log.debug("goals_that_wait_not_shown", why=error.message)
            self.forget(goal)
        except IoaError as error:
            _log.debug("goal_not_looked_for", goal=goal, why=error.message)
        return order.refused

    def _at_least(self, seconds: float) -> float:
        return max(seconds, min(_LONGEST_APART, _APART * len(self._orders)))

    async def _look(self, goal: GoalName, order: _Order, now: float) -> None:
        if await self._is_kept(goal):
            self.forget(goal)
        elif await self._waits(goal, order.seq):
            order.gone_since = None
        elif await self._is_kept(goal):  # it was put on record meanwhile
            self.forget(goal)
        elif order.gone_since is None:
            order.gone_since, order.look_at = now, now + _BELIEVED_AFTER
        elif now - order.gone_since >= _BELIEVED_AFTER:
            order.refused = GoalResult(
                goal_id=goal.goal_id,
                user=goal.user,
                reason=Reason.FAILED,
                content=_REFUSED,
                comm_id=goal.comm_id,
                turns=0,
                finished_at=self._clock.now(),
            )

    async def _waits(self, goal: GoalName, seq: int) -> bool:
        """Whether the goal itself is in its place: in a stream that was made anew there may be another one."""
        page = await read_stream(self._client, GOALS, ReadStream(seq=seq))
        return any(find_goal_id(one.data) == goal.goal_id and _is_of(goal, one.subject) for one in page.messages)


def _is_of(goal: GoalName, subject: str) -> bool:
    try:
        return subjects.parse_goal_subject(subject)[0] == goal.owner
    except InvalidInputError:
        return False
