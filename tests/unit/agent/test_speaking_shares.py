"""What one user's goals leave to others of what an agent may say."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from ioa.agent.history import GroupHistory
from ioa.agent.outbox import Outbox
from ioa.agent.speaking_shares import SpeakingShares
from ioa.errors import RateLimitedError
from ioa.group.events import GroupLaunched
from ioa.group.machine import step
from ioa.group.requests import Accepted
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.ids import AgentId, SessionId, UserId
from ioa.protocol.messages import Discussion, Message
from ioa.quotas import RATES, Admitted, Buckets, Family
from ioa.testing.manual_clock import CountedIds, ManualClock
from ioa.testing.memory_store import MemoryStore
from tests.contract.agent_store.stories import sequenced
from tests.unit.group.scenario import COMM, START, Scenario, charter, limits

ADA = AgentId("ada")
ANNA, EVE = UserId("anna"), UserId("eve")


class _Router:
    """Takes what an agent says, as far as it may say it, and counts what it refuses."""

    def __init__(self) -> None:
        self.refused = self.taken = 0
        self._buckets = Buckets({Family.SAY: RATES[Family.SAY]})

    async def say(self, message: Message) -> Accepted:
        """Answer."""
        if not isinstance(self._buckets.judge(message.header.sender, Family.SAY, time.monotonic()), Admitted):
            self.refused += 1
            raise RateLimitedError("Too often.")
        self.taken += 1
        return Accepted(seq=self.taken)


def _history(user: UserId) -> GroupHistory:
    opened = GroupLaunched(at=START, charter=charter(ADA, limits=limits()).model_copy(update={"user": user}))
    history = GroupHistory(COMM)
    for entry in sequenced(Scenario(step(None, opened).state, (opened,))):
        history.apply(entry)
    return history


async def test_a_user_whose_goals_have_an_agent_speak_without_end_leaves_half_to_others() -> None:
    """What is said for others is taken at once, and nothing is refused, so that the doctor does not name the agent."""
    router, clock = _Router(), ManualClock(START)
    outbox = Outbox(ADA, cast("AgentNetwork", router), MemoryStore(), clock, CountedIds(), SessionId("ada-1"))
    anna, eve = _history(ANNA), _history(EVE)

    async def say(history: GroupHistory, turn: int) -> float:
        began = time.monotonic()
        await outbox.say(history, Discussion(content="x"), turn)
        return time.monotonic() - began

    await say(anna, 0)
    async with asyncio.TaskGroup() as group:
        going = [group.create_task(say(eve, turn)) for turn in range(1, 130)]
        await asyncio.sleep(0.5)
        waited = [await say(anna, turn) for turn in range(200, 220)]
        assert (router.refused, max(waited) < 1) == (0, True)
        for one in going:
            one.cancel()


async def test_a_user_alone_has_all_that_an_agent_may_say() -> None:
    """Nothing is kept for those who are not there, and who comes later does not wait for what was said before."""
    shares, began = SpeakingShares(), time.monotonic()
    for _ in range(1_000):
        await shares.take(EVE, 200)
    for _ in range(10):
        await shares.take(ANNA, 200)
    assert time.monotonic() - began < 1
