"""A system as programs use it: launch a goal, follow it, take its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Literal, overload

from ioa.client.watching import watch
from ioa.errors import ConflictError, NotFoundError
from ioa.group.requests import CancelGroup
from ioa.ports.goal_client import PAGE_GOALS, GoalList, GoalStatus
from ioa.ports.group_log import StoredEntry
from ioa.ports.system_client import SystemClient
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder, order_of
from ioa.protocol.goals import Artifact, Goal, GoalRecord, GoalResult
from ioa.protocol.ids import CommId, GoalId, GoalName, parse_goal_id
from ioa.protocol.search import Search, SearchResult

File = str | PathLike[str]

ACCEPTED_WITHIN = timedelta(seconds=2)
"""How long `launch` waits for group setup to accept a goal."""

_SOON_SECONDS, _LONGEST_SECONDS = 0.005, 0.2


@dataclass(frozen=True)
class Launched:
    """A goal that is stored and will not be lost.

    Attributes:
        name: Whose it is, and its id among his.
        record: What was accepted, and when; None if nobody has accepted it yet, which says no more than that it takes longer.
    """

    name: GoalName
    record: GoalRecord | None

    @property
    def goal_id(self) -> GoalId:
        """Its id."""
        return self.name.goal_id

    @property
    def comm_id(self) -> CommId:
        """The group that works for it, or will."""
        return self.name.comm_id


class Client:
    """A running system. Made by `connect`; all methods may be called side by side.

    Every method raises `UnavailableError` when nobody answers. A goal is named by its id, or by its `GoalName` if it is somebody
    else's.

    Args:
        system: What it stands on. It has everything that operators ask besides.
    """

    def __init__(self, system: SystemClient) -> None:
        self.system = system

    async def run(self, goal: str | GoalOrder, files: Sequence[File] = ()) -> GoalResult:
        """Launch a goal and wait for its result, across outages. A goal that fails is a result too: see `GoalResult.succeeded`.

        Raises:
            InvalidInputError: The goal cannot be one, or a file cannot be read.
            ConflictError: The goal has an id, and another goal has it already.
        """
        return await self.result((await self.launch(goal, files)).name, wait=True)

    async def launch(
        self, goal: str | GoalOrder, files: Sequence[File] = (), *, accepted_within: timedelta = ACCEPTED_WITHIN
    ) -> Launched:
        """Store the files and the goal, and wait until it is accepted. Launching it again under its own id is the same goal.

        Args:
            goal: In words, or with all that may be said besides.
            files: What it is about.
            accepted_within: How long to wait for its acceptance; it is stored whatever comes of that.

        Raises:
            InvalidInputError: The goal cannot be one, a file cannot be read, or two have one name.
            ConflictError: The goal has an id, and another goal has it already.
        """
        order = await self.system.complete(goal if isinstance(goal, GoalOrder) else order_of(goal), [Path(file) for file in files])
        await self.system.launch(order)
        assert order.goal_id is not None, "a complete order has an id"
        name = GoalName(await self.system.user(), order.goal_id)
        record = await self._acceptance(name, accepted_within)
        if record is not None and not _is_that_of(order, record.goal):
            raise ConflictError(f"There is another goal {name} already.", hint="Give this one an id of its own, or none.")
        return Launched(name, record)

    async def follow(self, goal: str | GoalName, *, after: int = 0) -> AsyncGenerator[StoredEntry, None]:
        """Yield every entry of a goal's group and of its nested teams, once, by rising sequence, until the goal's group has ended.

        Whoever was interrupted goes on behind the last entry seen, in whichever process.

        Args:
            goal: A goal; one that has no group yet is waited for.
            after: The sequence behind which to begin.
        """
        async with watch(self.system, (await self._name(goal)).comm_id, after=after) as news:
            async for one in news:
                if isinstance(one, StoredEntry):
                    yield one

    @overload
    async def result(self, goal: str | GoalName, *, wait: Literal[True]) -> GoalResult: ...

    @overload
    async def result(self, goal: str | GoalName, *, wait: bool = False) -> GoalResult | None: ...

    async def result(self, goal: str | GoalName, *, wait: bool = False) -> GoalResult | None:
        """Read a goal's result; None while it has none, unless one waits for it.

        Raises:
            NotFoundError: One waits, and it ended so long ago that it was removed.
        """
        name = await self._name(goal)
        return await (self.system.wait_for_result(name) if wait else self.system.result(name))

    async def cancel(self, goal: str | GoalName, why: str = "") -> None:
        """Cancel a goal; one that has ended stays as it ended.

        Raises:
            NotFoundError: There is no such goal.
            ForbiddenError: It is somebody else's.
        """
        name = await self._name(goal)
        await self.system.cancel(validate(CancelGroup, {"goal_id": name.goal_id, "why": why}), name.owner)

    async def goal(self, goal: str | GoalName) -> GoalStatus:
        """Look at one goal.

        Raises:
            NotFoundError: There is no such goal, or it was removed.
        """
        return await self.system.goal(await self._name(goal))

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False) -> GoalList:
        """List goals, newest first, a page at a time; `before` is what the page before said."""
        return await self.system.goals(limit=limit, before=before, open_only=open_only)

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file that a goal produced, as `GoalResult.artifacts` names it.

        Raises:
            NotFoundError: It is gone.
        """
        return await self.system.fetch(artifact)

    async def agents(self, *, online_only: bool = False) -> Sequence[AgentStatus]:
        """List all agents, by id."""
        return await self.system.agents(online_only=online_only)

    async def search(self, *needs: str) -> SearchResult:
        """Ask discovery which agents fit what is needed, each need said in words.

        Raises:
            InvalidInputError: There is no need, or one is empty or too long.
        """
        return await self.system.search(validate(Search, {"needs": [{"text": need} for need in needs]}))

    async def _name(self, goal: str | GoalName) -> GoalName:
        if isinstance(goal, GoalName):
            return goal
        return GoalName(await self.system.user(), parse_goal_id(goal))

    async def _acceptance(self, name: GoalName, within: timedelta) -> GoalRecord | None:
        pause = _SOON_SECONDS
        try:
            async with asyncio.timeout(within.total_seconds()):
                while True:
                    try:
                        return (await self.system.goal(name)).record
                    except NotFoundError:
                        await asyncio.sleep(pause)
                        pause = min(pause * 2, _LONGEST_SECONDS)
        except TimeoutError:
            return None


def _is_that_of(order: GoalOrder, goal: Goal) -> bool:
    """Whether this is the goal that was ordered. What was only named, or stood in the order itself, is known by its name."""
    given = {one.name: one.sha256 for one in goal.inputs}
    files = all(given.get(one.name) == one.sha256 for one in order.inputs if isinstance(one, Artifact))
    accepted = order.accepted(goal.name, goal.inputs).model_copy(update={"traceparent": goal.traceparent})
    return files and len(given) == len(order.inputs) and accepted == goal
