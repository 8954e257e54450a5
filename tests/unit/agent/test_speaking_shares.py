"""In which order what an agent says for several users goes out."""

from __future__ import annotations

import asyncio
import statistics

import pytest

from ioa.agent.speaking_shares import SpeakingShares
from ioa.protocol.ids import UserId
from ioa.quotas import RATES, Admitted, Buckets, Family
from tests.rig.virtual_time import run_in_virtual_time

ANNA, EVE, ADA = UserId("anna"), UserId("eve"), "ada"
RATE = RATES[Family.SAY]


async def _speak(shares: SpeakingShares, user: UserId, messages: int, size_bytes: int = 200) -> float:
    """Say so much at once in turns of a long group, and return how many seconds that takes."""
    since = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for number in range(messages):
            group.create_task(shares.turn(user, size_bytes, 100 + number))
    return asyncio.get_running_loop().time() - since


@pytest.mark.parametrize(("users", "goals"), [(1, 20), (2, 10), (20, 5)])
def test_who_has_an_agent_speak_without_end_leaves_room_for_others(users: int, goals: int) -> None:
    """However many do it together: goals of others end soon, and routers refuse nothing, so that the doctor names no agent."""
    shares, router = SpeakingShares(), Buckets({Family.SAY: RATE})
    refused, said, took = 0, 0, list[float]()

    async def say(user: UserId, turn: int) -> None:
        nonlocal refused, said
        await shares.turn(user, 200, turn)
        judged = router.judge(ADA, Family.SAY, asyncio.get_running_loop().time(), 200)
        refused, said = refused + (not isinstance(judged, Admitted)), said + 1
        await asyncio.sleep(0.02)

    async def endless(user: UserId) -> None:
        for turn in range(1, 10_000):
            await say(user, turn)

    async def main() -> None:
        await shares.turn(ANNA, 200, 1)
        async with asyncio.TaskGroup() as group:
            loud = [group.create_task(endless(UserId(f"eve-{user}"))) for user in range(users) for _ in range(goals)]
            for _ in range(30):
                began = asyncio.get_running_loop().time()
                for turn in range(1, 6):
                    await say(ANNA, turn)
                took.append(asyncio.get_running_loop().time() - began)
                await asyncio.sleep(2)
            for task in loud:
                task.cancel()

    run_in_virtual_time(main())
    assert (statistics.median(took) < 0.2, max(took) < 0.5, refused, said > 60 * RATE.per_second * 0.85) == (True, True, 0, True)


def test_a_long_group_of_a_user_has_his_part() -> None:
    """Short goals go first, of one user no more than of others: who begins one after the other keeps nobody from speaking."""

    async def main() -> None:
        shares = SpeakingShares()
        await shares.turn(EVE, 200, 1)
        async with asyncio.TaskGroup() as group:
            short = [group.create_task(shares.turn(EVE, 200, 1)) for _ in range(2_000)]
            assert await _speak(shares, ANNA, 100) < 2 * (100 + 2 * RATE.burst) / RATE.per_second
            for task in short:
                task.cancel()

    run_in_virtual_time(main())


def test_a_user_alone_has_all_that_an_agent_may_say() -> None:
    """Nothing is kept for those who are not there, and who comes later does not wait for what was said before."""

    async def main() -> None:
        shares = SpeakingShares()
        assert await _speak(shares, EVE, 1_000) == 0
        assert await _speak(shares, ANNA, 10) < 0.5
        assert await _speak(shares, EVE, 1_000) > 10

    run_in_virtual_time(main())


def test_a_user_is_alone_again_when_nothing_is_said_for_others() -> None:
    """An agent that has worked for a second user once does not go on more slowly for the first one."""

    async def main() -> None:
        shares = SpeakingShares()
        await shares.turn(ANNA, 200, 1)
        await asyncio.sleep(59)
        assert await _speak(shares, EVE, 1_000) > 10
        await asyncio.sleep(2)
        assert await _speak(shares, EVE, 1_000) == 0

    run_in_virtual_time(main())


def test_what_is_long_counts_by_its_bytes() -> None:
    """Routers count a message once more for each so many bytes; one that counts for more than all at once is said as well."""
    unit = RATE.unit_bytes or 0

    async def main() -> None:
        seconds = []
        for size in (200, 3 * unit, 2 * RATE.burst * unit):
            shares = SpeakingShares()
            await shares.turn(ANNA, 200, 1)
            seconds.append(await _speak(shares, EVE, 2 * RATE.burst, int(size)))
        assert unit and 2 * seconds[0] < seconds[1] < seconds[2]

    run_in_virtual_time(main())


def test_who_waits_no_more_takes_nothing() -> None:
    """What was cancelled is not said, and keeps nobody waiting."""

    async def main() -> None:
        shares = SpeakingShares()
        await shares.turn(ANNA, 200, 1)
        waiting = [asyncio.ensure_future(_speak(shares, EVE, 1_000)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await _speak(shares, ANNA, 20) < 1

    run_in_virtual_time(main())
