"""Turns at what costs much: nobody waits for more than his share of what others have begun."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ioa.errors import RateLimitedError
from ioa.fair_turns import FairTurns, Sharers
from ioa.protocol.ids import UserId

EVE, ANNA = UserId("eve"), UserId("anna")


async def test_one_user_follows_another() -> None:
    """Who asks for one thing waits for what goes on now, and not for all that another user has asked for before."""
    turns, done = FairTurns(1, 1), list[UserId]()

    async def ask(user: UserId) -> None:
        async with turns.turn(user):
            await asyncio.sleep(0)
            done.append(user)

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for user in (EVE, EVE, EVE, EVE, ANNA, ANNA):
            group.create_task(ask(user))
    assert done == [EVE, ANNA, EVE, ANNA, EVE, EVE]


async def test_one_user_leaves_turns_to_others() -> None:
    """What one user has begun never takes all that may go on at a time; whose turn does not come is told when to come back."""
    turns, at_once = FairTurns(3, 2), timedelta(0)
    async with turns.turn(EVE), turns.turn(EVE):
        with pytest.raises(RateLimitedError) as refused:
            async with turns.turn(EVE, at_once):
                pass
        async with turns.turn(ANNA, at_once):
            pass
    assert refused.value.retry_after == timedelta(seconds=1)
    async with asyncio.timeout(20), turns.turn(EVE), turns.turn(EVE):
        pass


async def test_who_gives_up_leaves_no_turn_taken() -> None:
    """However many give up while they wait, or in the moment in which their turn comes, others have all turns."""
    turns = FairTurns(1, 1)

    async def ask() -> None:
        async with turns.turn(EVE):
            pass

    async with turns.turn(EVE):
        waiting = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
    waiting[0].cancel()  # its turn has been given by now, and it has not heard of it
    await asyncio.wait(waiting)
    assert [one.cancelled() for one in waiting] == [True, True, False]
    async with asyncio.timeout(20), turns.turn(ANNA):
        pass


async def test_what_takes_several_places_is_not_overtaken() -> None:
    """What is large waits until there is room for it; what is small and comes later, of whomever, does not take it away."""
    turns, at_once = FairTurns(3, 3), timedelta(0)
    with_all = asyncio.Event()

    async def ask() -> None:
        async with turns.turn(EVE, places=3):
            with_all.set()

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        async with turns.turn(ANNA):
            group.create_task(ask())
            await asyncio.sleep(0)
            with pytest.raises(RateLimitedError):
                async with turns.turn(ANNA, at_once):
                    pass
            assert not with_all.is_set()
        await with_all.wait()
    async with asyncio.timeout(20), turns.turn(ANNA), turns.turn(EVE, places=2):
        pass


async def test_what_several_share_has_the_turn_of_whoevers_comes_first() -> None:
    """Whose other things wait keeps nobody from it who waits for nothing else, also who comes while it waits."""
    turns, begun, held = FairTurns(3, 1), list[str](), asyncio.Event()

    async def ask(what: str, who: UserId | Sharers) -> None:
        async with turns.turn(who):
            begun.append(what)
            await held.wait()

    eves, both = Sharers(EVE), Sharers(EVE)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group, turns.turn(EVE):
        for what, who in (("hers", EVE), ("hers", EVE), ("of eve", eves), ("of both", both)):
            group.create_task(ask(what, who))
        await asyncio.sleep(0)
        with both.joined(ANNA):
            await asyncio.sleep(0)
            begun_before = [*begun]
            held.set()
    assert (begun_before, sorted(begun)) == (["of both"], ["hers", "hers", "of both", "of eve"])


async def test_what_was_had_in_anothers_turn_costs_none() -> None:
    """Who shares something is passed over for it no more than who had it, and what it was waits nowhere any more."""
    turns, done = FairTurns(1, 1), list[str]()

    async def ask(what: str, who: UserId | Sharers) -> None:
        async with turns.turn(who):
            done.append(what)

    async with asyncio.timeout(20), asyncio.TaskGroup() as group, turns.turn(UserId("carl")):
        asked = (("both's", Sharers(EVE, ANNA)), ("eve's", EVE), ("anna's", ANNA), ("bob's", UserId("bob")))
        for what, who in asked:
            group.create_task(ask(what, who))
        await asyncio.sleep(0)
    assert (done, turns._waiting) == (["both's", "anna's", "bob's", "eve's"], {})
