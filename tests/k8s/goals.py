"""Goals for a release, and what became of them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from nats.aio.client import Client

from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.agent.send import until_answered
from ioa.group.events import GroupLaunched
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import LOCAL, AgentId, GoalId, comm_id_of_goal
from tests.k8s.release import FULL_NAME, is_ready, pods, read_file
from tests.rig.deadline import eventually
from tests.rig.evidence import collect, wait_for_rest
from tests.rig.log_checker import Evidence, check
from tests.rig.oracle import QUICK_KINDS, answer_to

_REST = timedelta(minutes=5)
_TIMEOUT = timedelta(minutes=10)
_LOAD_AGENTS = tuple(AgentId(f"load-{number}") for number in range(3))
_AGENTS = (*_LOAD_AGENTS, *(AgentId(f"calculator-{number}") for number in range(4)))
"""Who learns by itself how its groups have ended; a person does when somebody looks what waits for him."""

_COPY_NOTES = 'import base64, pathlib; print(base64.b64encode(pathlib.Path("/data/notes.jsonl").read_bytes()).decode())'


class Goals:
    """Publish goals as a user does, and judge what a system made of all of them."""

    def __init__(self, client: Client, folder: Path, name: str) -> None:
        self._client = client
        self._folder = folder
        self._name = name
        self.load: list[GoalId] = []
        self._answers: dict[GoalId, str] = {}

    async def publish(self, goal_id: GoalId, text: str, pool: str) -> None:
        """Publish one goal until the server has it."""
        order = GoalOrder(goal=text, goal_id=goal_id, agent=AgentId(pool), timeout=_TIMEOUT.total_seconds())
        data = order.model_dump_json(exclude_none=True).encode()

        async def put() -> None:
            with unavailable_unless_answered("The goal's stream"):
                await self._client.jetstream().publish(subjects.goal_of(LOCAL), data, timeout=2)

        await until_answered(put)

    async def publish_load(self, count: int, seed: int) -> None:
        """Publish so many conversations of every kind, all at once."""
        chance = random.Random(seed)
        names = [GoalId(f"{self._name}-load-{len(self.load) + number}") for number in range(count)]
        self.load += names
        async with asyncio.TaskGroup() as group:
            for name in names:
                text = f"load {chance.choice(QUICK_KINDS)} {name}"
                self._answers[name] = answer_to(text) or ""
                group.create_task(self.publish(name, text, "load"))

    async def publish_sums(self, count: int) -> dict[GoalId, str]:
        """Publish so many sums for the calculators; returns what each must come to."""
        wanted = {GoalId(f"{self._name}-sum-{number}"): str(3 * (number + 1)) for number in range(count)}
        async with asyncio.TaskGroup() as group:
            for number, goal_id in enumerate(wanted):
                group.create_task(self.publish(goal_id, f"15 / 100 * {20 * (number + 1)}", "calculator"))
        return wanted

    async def rest(self, *others: GoalId) -> None:
        """Wait until all goals have ended and everybody knows."""
        await wait_for_rest(self._client, [*self.load, *others], within=_REST, members=_AGENTS)

    async def wrong_sums(self, wanted: dict[GoalId, str]) -> list[str]:
        """Wait for sums and say which results are wrong."""
        await self.rest(*wanted)
        evidence = await self._evidence()
        results = {result.goal_id: result for result in evidence.results}
        return [f"{goal_id}: {results[goal_id].content}" for goal_id, sum_ in wanted.items() if not _holds(results[goal_id], sum_)]

    async def leaders(self, goals: Sequence[GoalId]) -> Counter[str]:
        """Who led how many of these goals."""
        logs = (await self._evidence()).logs
        first = (logs[comm_id_of_goal(goal_id)][0].entry.event for goal_id in goals)
        return Counter(str(event.charter.owner) for event in first if isinstance(event, GroupLaunched))

    async def wrong(self) -> list[str]:
        """Wait for rest and judge all load by its logs, its results, and what the agents wrote down."""
        await self.rest()
        # A pod that was told to end is not replaced before it has: until then the others may all be ready.
        await eventually(lambda: pods("load"), lambda found: sum(map(is_ready, found)) == len(_LOAD_AGENTS), within=_REST)
        notes = []
        for number, agent_id in enumerate(_LOAD_AGENTS):
            pod = f"{FULL_NAME}-load-{number}"
            note = self._folder / f"{agent_id}.jsonl"
            await asyncio.to_thread(note.write_bytes, await read_file(pod, _COPY_NOTES))
            notes.append(note)
        evidence = await collect(self._client, self.load, notes, frozenset(), answers=self._answers)
        mine = [result for result in evidence.results if result.goal_id in self.load]
        return await asyncio.to_thread(check, replace(evidence, results=mine))

    async def _evidence(self) -> Evidence:
        return await collect(self._client, self.load, [], frozenset())


def _holds(result: GoalResult, wanted: str) -> bool:
    return result.succeeded and wanted in result.content
