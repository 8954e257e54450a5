"""What a goal asks of whoever looks at it: turns of people that a caller answers for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from ioa.beside import beside
from ioa.client.seat import Awaited, awaited_of, people_in
from ioa.errors import NotFoundError
from ioa.ports.goal_client import GoalStatus
from ioa.protocol.goals import Goal
from ioa.protocol.team import person_of
from ioa_gateway.callers import Caller
from ioa_gateway.calls import ApiCall


def asked_of(caller: Caller, status: GoalStatus) -> list[Awaited]:
    """Say what in a goal is up to people whom a caller answers for."""
    standing = status.standing
    if status.result is not None or standing is None or standing.charter is None:
        return []
    people = [one for one in people_in(standing.state) if caller.answers_for(person_of(one))]
    found = [awaited_of(standing.charter, standing.state, one) for one in people]
    return [one for one in found if one is not None]


async def settled(call: ApiCall, goal: Goal, left: Callable[[], Awaitable[None]] | None = None) -> None:
    """Wait until a goal has ended or asks the caller something, or until `left` returns: nobody waits any more."""
    over = asyncio.Event()

    async def end() -> None:
        await call.client.result(goal.name, wait=True)
        over.set()

    async def ask() -> None:
        if call.caller.people and await _is_asked(call, goal):
            over.set()

    async def leave() -> None:
        if left is not None:
            await left()
            over.set()

    async with beside(leave(), end(), ask()):
        await over.wait()


async def _is_asked(call: ApiCall, goal: Goal) -> bool:
    """Wait until a goal asks the caller something; False if it has ended."""
    try:
        status = await call.client.goal(goal.name)
    except NotFoundError:
        seq = 0  # others of its user have to end first
    else:
        if asked_of(call.caller, status):
            return True
        seq = status.standing.seq if status.standing else 0
    async with aclosing(call.rooms.documents(call.caller, goal.comm_id, seq)) as documents:
        async for entry in documents:
            if call.caller.answers_for_any(entry["floor"]) and asked_of(call.caller, await call.client.goal(goal.name)):
                return True
    return False
