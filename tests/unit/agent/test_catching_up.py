"""Reading the logs of many groups at once, some of them very long."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ioa.agent.catching_up import CatchingUp
from ioa.errors import RateLimitedError


async def _read(catching_up: CatchingUp, name: str, pages: int, told: list[str]) -> None:
    for page in range(pages):

        async def ask(page: int = page) -> None:
            await asyncio.sleep(0)
            told.append(f"{name}{page}")

        await catching_up.ask(page, ask)


async def test_a_short_log_waits_behind_no_long_ones() -> None:
    """Of fifty that are long no more is read before it than a first page of each."""
    catching_up, told = CatchingUp(at_once=1), list[str]()
    long = [asyncio.create_task(_read(catching_up, f"{number}-", 20, told)) for number in range(50)]
    await asyncio.sleep(0)
    await _read(catching_up, "short-", 2, told)
    assert told.index("short-1") <= 102
    await asyncio.gather(*long)
    assert len(told) == 50 * 20 + 2


async def test_a_long_log_has_its_turn_among_groups_of_which_nothing_was_read() -> None:
    """Of more of these than are told in time some wait always, since who hears nothing of a group asks again and again."""
    catching_up, told = CatchingUp(at_once=1), list[str]()

    async def silent(number: int) -> None:
        while "long-9" not in told and len(told) < 2_000:
            await _read(catching_up, f"{number}-", 1, told)

    silents = [asyncio.create_task(silent(number)) for number in range(8)]
    await asyncio.sleep(0)
    await _read(catching_up, "long-", 10, told)
    await asyncio.gather(*silents)
    assert told.index("long-9") < 1_000


async def test_who_asks_too_often_comes_back_in_the_same_turn() -> None:
    """What is told to one agent is told to it for all of its groups: who waits longest would else be overtaken each time."""
    catching_up, told, refused = CatchingUp(at_once=1), list[str](), 3

    async def first() -> None:
        nonlocal refused
        if refused:
            refused -= 1
            raise RateLimitedError("Too often.", retry_after=timedelta(milliseconds=1))
        told.append("first")

    async def second() -> None:
        told.append("second")

    await asyncio.gather(catching_up.ask(0, first), catching_up.ask(0, second))
    assert told == ["first", "second"]


async def test_who_is_cancelled_gives_the_turn_back() -> None:
    """Whether it has come or is waited for."""
    catching_up, told = CatchingUp(at_once=1), list[str]()

    async def for_ever() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(catching_up.ask(0, for_ever)) for _ in range(3)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _read(catching_up, "a", 1, told)
    assert told == ["a0"]
