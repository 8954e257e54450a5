"""Write a data folder as version c7cd6ef leaves it when everything is killed. It runs on that version's own code, never on today's.

    python write_folder.py FOLDER

FOLDER then holds `nats`, the streams; `fleet`, the agents' memories and their notes; and `left.json`: when that was, the results of
goals that had ended, the goals that were open, and one that waits for a pool of which no agent runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nats.js.errors

from ioa.adapters.nats_goals import NatsGoalRecords
from ioa.adapters.nats_log import NatsGroupLog
from ioa.adapters.nats_server import open_nats_server
from ioa.protocol.ids import AgentId, GoalId, comm_id_of_goal
from ioa.runtime.logs import configure_logs
from ioa.runtime.system import System
from ioa.testing.deadline import eventually
from ioa.testing.fleet import CONTROL_PLANE, GROUPS, REGISTRIES, ROUTERS, WORKERS, Fleet, open_fleet
from ioa.testing.load_brain import KINDS
from ioa.testing.load_worker import POOL

# Floors and pauses of the groups have run out when another version looks at them.
ENV = {"IOA_FLOOR_TIMEOUT": "2", "IOA_PAUSE_TIMEOUT": "5", "IOA_LOG_LEVEL": "error"}
WANTED = {"discussing", "assigned", "paused"}
WITHIN = timedelta(seconds=45)
BATCHES, BATCH_WITHIN = 6, timedelta(seconds=8)
SETTLED_SECONDS = 0.3
LEAST_OPEN = 6
TIMEOUT = timedelta(hours=2)


async def phases(fleet: Fleet, goals: list[GoalId]) -> dict[GoalId, str]:
    """Where the groups of goals stand that have been launched."""
    log = NatsGroupLog(fleet.client)
    heads = {goal_id: await log.last(comm_id_of_goal(goal_id)) for goal_id in goals}
    return {goal_id: str(head.entry.state.phase) for goal_id, head in heads.items() if head is not None}


def is_wanted(seen: dict[GoalId, str]) -> bool:
    """Whether enough goals are open, and there are some in every phase."""
    still_open = [phase for phase in seen.values() if phase in WANTED]
    return set(still_open) == WANTED and len(still_open) >= LEAST_OPEN


async def stands(fleet: Fleet, goals: list[GoalId]) -> bool:
    """Freeze the routers at a moment when the goals are as wanted; if they are not by then, let them go on."""
    await eventually(lambda: phases(fleet, goals), is_wanted, within=BATCH_WITHIN)
    for name in ROUTERS:
        os.kill(fleet.pid(name), signal.SIGSTOP)
    seen, before = await phases(fleet, goals), None
    while seen != before:  # what the routers had sent may still arrive
        await asyncio.sleep(SETTLED_SECONDS)
        seen, before = await phases(fleet, goals), seen
    if is_wanted(seen):
        return True
    for name in ROUTERS:
        os.kill(fleet.pid(name), signal.SIGCONT)
    return False


async def publish(fleet: Fleet, batch: int) -> list[GoalId]:
    """Publish four goals of each kind."""
    goals = [GoalId(f"open-{kind}-{4 * batch + number}") for kind in KINDS for number in range(4)]
    for goal_id in goals:
        await fleet.publish(goal_id, goal_id.split("-")[1], timeout=TIMEOUT)
    return goals


async def write(folder: Path) -> None:
    """Let some goals end, leave others open in every phase, and kill everything."""
    async with open_nats_server(folder / "nats", None) as server, open_fleet(server.url, folder / "fleet", ENV) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        await fleet.until_online()
        ended = [GoalId(f"ended-{kind}") for kind in KINDS]
        for goal_id, kind in zip(ended, KINDS, strict=True):
            await fleet.publish(goal_id, kind, timeout=TIMEOUT)
        await fleet.rest(within=WITHIN)

        left = await publish(fleet, 0)
        await eventually(lambda: phases(fleet, left), lambda seen: len(seen) > len(left) // 2, within=WITHIN)
        await fleet.kill(WORKERS[1])
        # On a busy machine goals may end before others begin: more of them come until there are some in every phase.
        for batch in range(1, BATCHES):
            with suppress(AssertionError):
                if await stands(fleet, left):
                    break
            left.extend(await publish(fleet, batch))
        else:
            raise AssertionError(f"No time at which enough goals were in all of {WANTED}: {await phases(fleet, left)}")
        for name in (*ROUTERS, WORKERS[0]):
            await fleet.kill(name)
        waits = GoalId("waits")
        await fleet.publish(waits, "sync", timeout=TIMEOUT, agent=AgentId(POOL))
        await eventually(lambda: recorded(fleet, waits), within=WITHIN)
        for name in (*GROUPS, *REGISTRIES):
            await fleet.kill(name)
        standing = await phases(fleet, left)
        results = [result for goal_id in ended if (result := await System(fleet.client).result(goal_id)) is not None]
        report = {
            "at": datetime.now(UTC).isoformat(),
            "ended": [result.model_dump(mode="json") for result in results],
            "open": [goal_id for goal_id in left if standing.get(goal_id) in (*WANTED, "concluding", None)],
            "all": [*ended, *left, waits],
            "phases": sorted(set(standing.values())),
        }
        (folder / "left.json").write_text(json.dumps(report))


async def recorded(fleet: Fleet, goal_id: GoalId) -> bool:
    """Whether a goal was taken in."""
    try:
        return await NatsGoalRecords(fleet.client.jetstream()).find(comm_id_of_goal(goal_id)) is not None
    except nats.js.errors.Error:
        return False


if __name__ == "__main__":
    configure_logs("error", "console")
    asyncio.run(write(Path(sys.argv[1])))
