"""What is told of goals that are refused, and of which nothing is kept: their results are removed after some minutes.

So whoever waits for one is told, in whichever process, and webhooks are, while nobody fills anything by goals that are refused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta

import structlog

from ioa.errors import UnavailableError
from ioa.ports.clock import Clock
from ioa.ports.delivery import PassingResults
from ioa.protocol.codec import shortened
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import GoalName
from ioa.protocol.results import encode_result
from ioa.quotas import Admitted, Buckets, Family, Rate

_TOLD = Rate(5, 1_000, unit_bytes=1_000)
"""How much of one user is told: of those who wait no more are honest, and what is there at a time is some 2 MB."""
_MAX_WHY_BYTES = 1_000
_TOLD_SECONDS, _MOST_TOLD = 300.0, 16_384
"""For how long it is told, also to a webhook whose gateway was away; if there are more, those that have been told longest go."""
_EVERY_SECONDS = 1.0
_LOOKED_BACK = timedelta(hours=1)
"""Of how long ago a process looks, when it starts, for what others have told: so long there may have been none."""

_log = structlog.get_logger(__name__)


class ToldRefusals:
    """Tells of refused goals for a while, of each user so many.

    Args:
        results: Where they are told.
        clock: Stamps them.
        now: Tells the time in seconds; it never goes back.
    """

    def __init__(self, results: PassingResults, clock: Clock, now: Callable[[], float]) -> None:
        self._results = results
        self._clock = clock
        self._now = now
        self._buckets = Buckets({Family.OTHERS: _TOLD})
        self._told = deque[tuple[float, GoalName]]()

    async def tell(self, goal: GoalName, why: str) -> None:
        """Tell that a goal was refused, unless it has a result, or too much is told of its user. What cannot be told now is not."""
        result = GoalResult(
            goal_id=goal.goal_id,
            user=goal.user,
            reason=Reason.FAILED,
            content=f"The goal was not accepted: {shortened(why, _MAX_WHY_BYTES)}",
            comm_id=goal.comm_id,
            turns=0,
            finished_at=self._clock.now(),
        )
        size = len(encode_result(result))
        if not isinstance(self._buckets.judge(goal.owner, Family.OTHERS, self._now(), size), Admitted):
            _log.debug("goal_refused_without_result", user=goal.owner, goal_id=goal.goal_id)
            return
        try:
            if await self._results.publish(result):
                self._told.append((self._now() + _TOLD_SECONDS, goal))
        except UnavailableError as error:
            _log.info("refusal_not_told", user=goal.owner, goal_id=goal.goal_id, error=error.message)

    async def follow(self) -> None:
        """Remove what has been told for long enough, for ever. What cannot be removed now is tried again."""
        knows_all = False
        while True:
            try:
                if not knows_all:
                    await self.learn()
                    knows_all = True
                await self.remove_old()
            except UnavailableError as error:
                _log.warning("refusals_not_removed", error=error.message)
            await asyncio.sleep(_EVERY_SECONDS)

    async def learn(self) -> None:
        """Know what other processes have told, which may have ended, so that this one removes it.

        Raises:
            UnavailableError: It cannot be read now.
        """
        now, at = self._now(), self._clock.now()
        told = [
            (now + _TOLD_SECONDS - (at - one.finished_at).total_seconds(), one.name)
            async for one in self._results.since(at - _LOOKED_BACK)
        ]
        self._told.extendleft(reversed(told))

    async def remove_old(self) -> None:
        """Remove what has been told for long enough.

        Raises:
            UnavailableError: It cannot be removed now.
        """
        while self._told and (self._told[0][0] <= self._now() or len(self._told) > _MOST_TOLD):
            await self._results.remove(self._told[0][1])
            self._told.popleft()

    async def is_told(self, goal: GoalName) -> bool:
        """Whether it is told of a goal now that it was refused. What a process told that has ended since may be there for too long.

        Raises:
            UnavailableError: Nobody can say.
        """
        told = await self._results.find(goal)
        if told is None or self._clock.now() - told.finished_at < timedelta(seconds=_TOLD_SECONDS):
            return told is not None
        await self._results.remove(goal)
        return False
