"""In which order reports go out, and what room they leave for what an agent says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.client import AgentClient, ClientOptions
from ioa.agent.history import GroupHistory
from ioa.agent.lease import TaskLease
from ioa.agent.outbox import Outbox
from ioa.agent.report_shares import ReportShares
from ioa.agent.speaking_shares import SpeakingShares
from ioa.errors import RateLimitedError
from ioa.group.requests import Accepted
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId, TaskId, UserId, task_id_of_turn
from ioa.protocol.messages import Discussion, InformTaskProgress, Message
from ioa.quotas import RATES, Admitted, Buckets, Family, Rate
from ioa.testing.manual_clock import CountedIds, ManualClock
from ioa.testing.memory_store import MemoryStore
from ioa.testing.scripted_brain import ScriptedBrain
from tests.contract.agent_store.stories import sequenced
from tests.rig.virtual_time import run_in_virtual_time
from tests.unit.agent.company import idle
from tests.unit.group.scenario import COMM, launched

ANNA, EVE = UserId("anna"), UserId("eve")
RATE = RATES[Family.SAY]
SLOW = Rate(10, 20)
WORKER = AgentId("worker")


class _Router:
    """Takes what an agent says as often as it may, and notes when it was told of each task."""

    def __init__(self, rate: Rate, refuses: timedelta | None = None) -> None:
        self._buckets = Buckets({Family.SAY: rate})
        self._refuses = refuses
        self.asked = self.refused = 0
        self.heard = defaultdict[TaskId, list[float]](list)

    async def say(self, message: Message) -> Accepted:
        """Judge a message by when it comes."""
        now = asyncio.get_running_loop().time()
        judged = self._buckets.judge(WORKER, Family.SAY, now, len(encode(message)))
        self.asked += 1
        await asyncio.sleep(0.003)
        if self._refuses is not None or not isinstance(judged, Admitted):
            self.refused += 1
            raise RateLimitedError("too often", retry_after=self._refuses)
        if isinstance(message.payload, InformTaskProgress):
            self.heard[message.payload.task_id].append(now)
        return Accepted(seq=1)


def _outbox(router: Any, rate: Rate) -> Outbox:
    """That of an agent which knows how much the router takes of it."""
    clock, ids, agent = ManualClock(), CountedIds(), idle("worker")
    ports = AgentPorts(router, MemoryStore(), clock, ids, ScriptedBrain())
    options = ClientOptions(Path("files"), say=rate)
    return AgentClient(agent, agent.card_as(WORKER), ports, new_session(clock, ids), options)._outbox


def _group(user: UserId) -> GroupHistory:
    """A group in which the worker has a task of a user, with a lease of half a minute."""
    history = GroupHistory(COMM)
    for entry in sequenced(launched("lead", "worker").assigns("lead", "t1-1:worker")):
        history.apply(entry)
    assert history.charter is not None
    history.charter = history.charter.model_copy(update={"user": user})
    return history


def _lease(outbox: Outbox, user: UserId, number: int = 1) -> TaskLease:
    history = _group(user)
    assert history.state is not None
    [task] = history.state.open_tasks
    return TaskLease(outbox, history, task.model_copy(update={"task_id": task_id_of_turn(number, user)}))


def test_who_has_an_agent_hold_many_tasks_leaves_room_for_others() -> None:
    """Routers refuse nothing: another user's words are said at once, his task keeps its lease, and all of the first live, too."""
    router, said, seconds = _Router(SLOW), 0, 120.0

    async def talk(outbox: Outbox) -> None:
        nonlocal said
        history = _group(ANNA)
        while True:
            await outbox.say(history, Discussion(content="hello"), 1)
            said += 1
            await asyncio.sleep(1)

    async def main() -> None:
        outbox = _outbox(router, SLOW)
        leases = [_lease(outbox, ANNA), *(_lease(outbox, EVE, number) for number in range(1, 201))]
        doing = [asyncio.ensure_future(one) for one in (talk(outbox), *(lease.keep() for lease in leases))]
        await asyncio.sleep(seconds)
        for one in doing:
            one.cancel()
        await asyncio.gather(*doing, return_exceptions=True)

    run_in_virtual_time(main())
    silent = {task: max(later - at for at, later in pairwise([0.0, *times, seconds])) for task, times in router.heard.items()}
    of_anna = silent.pop(task_id_of_turn(1, ANNA))
    assert (router.refused, said > 0.9 * seconds, of_anna < 30, len(silent), max(silent.values()) < 2 * 30) == (
        0,
        True,
        True,
        200,
        True,
    )


def test_a_task_that_waits_is_reported_on_half_as_often() -> None:
    """What runs is reported on three times in a lease, what has no slot yet less than twice."""
    router = _Router(RATE)

    async def main() -> None:
        waiting = asyncio.ensure_future(_lease(_outbox(router, RATE), EVE).keep())
        await asyncio.sleep(59)
        waiting.cancel()

    run_in_virtual_time(main())
    assert len(router.heard[task_id_of_turn(1, EVE)]) == 3


def test_who_is_refused_comes_back_when_he_was_told_to() -> None:
    """A router that has no room for a report is not asked again in a second."""
    router = _Router(RATE, refuses=timedelta(seconds=5))

    async def main() -> None:
        refused = asyncio.ensure_future(_lease(_outbox(router, RATE), EVE).keep())
        await asyncio.sleep(29)
        refused.cancel()

    run_in_virtual_time(main())
    assert router.asked == 6


def test_what_ends_first_is_reported_on_first_and_users_take_turns() -> None:
    """Beyond what may go out at once a user's reports go by the ends of their leases, and another's between them."""
    order = list[str]()

    async def main() -> None:
        shares = ReportShares(SpeakingShares(), RATE)

        async def report(name: str, user: UserId, until: float) -> None:
            await shares.turn(user, until)
            order.append(name)

        async with asyncio.TaskGroup() as group:
            for _ in range(RATE.burst):
                group.create_task(shares.turn(EVE, 0.0))
            await asyncio.sleep(0)
            for name, user, until in [("late", EVE, 30.0), ("soon", EVE, 10.0), ("hers", ANNA, 60.0)]:
                group.create_task(report(name, user, until))

    run_in_virtual_time(main())
    assert (order.index("hers"), order.index("soon") < order.index("late")) == (0, True)


def test_who_waits_no_more_takes_nothing() -> None:
    """Tasks that were lost meanwhile are not reported on, and keep nobody waiting."""

    async def main() -> None:
        loop, shares = asyncio.get_running_loop(), ReportShares(SpeakingShares(), RATE)
        lost = [asyncio.ensure_future(shares.turn(EVE, 1.0)) for _ in range(2_000)]
        await asyncio.sleep(0)
        for one in lost:
            one.cancel()
        await asyncio.gather(*lost, return_exceptions=True)
        since = loop.time()
        await asyncio.gather(*[shares.turn(EVE, 2.0) for _ in range(10)])
        assert loop.time() - since < 20 / RATE.per_second

    run_in_virtual_time(main())


def test_what_is_said_for_several_users_leaves_room_for_reports() -> None:
    """While an agent speaks as fast as it may, and reports as well, routers refuse nothing of either."""
    router, said, reported = Buckets({Family.SAY: RATE}), list[bool](), list[bool]()

    async def main() -> None:
        shares = SpeakingShares()
        reports = ReportShares(shares)

        def judged() -> bool:
            return isinstance(router.judge(WORKER, Family.SAY, asyncio.get_running_loop().time()), Admitted)

        async def speak(user: UserId) -> None:
            while True:
                await shares.turn(user, 200, 100)
                said.append(judged())
                await asyncio.sleep(0.02)

        async def report() -> None:
            while True:
                await reports.turn(EVE, 1.0)
                reported.append(judged())

        doing = [asyncio.ensure_future(one) for one in (speak(ANNA), speak(EVE), *(report() for _ in range(100)))]
        await asyncio.sleep(60)
        for one in doing:
            one.cancel()

    run_in_virtual_time(main())
    assert (all(said), all(reported)) == (True, True)
    assert min(len(said) / 20, len(reported) / 25) > 0.9 * 60
