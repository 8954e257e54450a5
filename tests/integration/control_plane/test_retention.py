"""Retention by the process of group setup."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, comm_id_of_goal
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion
from tests.integration.control_plane.conversation import ADA, BOB, Caller
from tests.rig.deadline import eventually
from tests.rig.processes import open_services

GOAL = GoalId("goal-1")
ROOM = comm_id_of_goal(GOAL)


async def test_group_setup_removes_by_itself(nats_url: str, tmp_path: Path) -> None:
    """With a short time to keep, a goal is gone some time after its end without anybody asking."""
    env = {"IOA_LEASE": "60", "IOA_KEEP": "1"}
    async with (
        open_services(nats_url, tmp_path / "logs", env) as services,
        open_connection(NatsSettings(nats_url, "caller")) as client,
    ):
        await services.start("ioa_registry", "ioa_router", "ioa_groups", replicas=1)
        caller, records = Caller(client), NatsGoalRecords(client)
        await caller.register(ADA, BOB)
        await caller.publish_goal(GOAL, timeout=60.0)
        await caller.launch(GOAL, ADA, BOB)
        await caller.say(ROOM, ADA, ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.")), 1, 1)
        ended_at = (await caller.result(GOAL)).finished_at
        for replica in services.running("ioa_groups"):
            await replica.kill()
        await eventually(SystemClock().now, lambda now: now > ended_at + timedelta(seconds=1))
        await services.start("ioa_groups", replicas=1)
        await eventually(lambda: records.find(ROOM), lambda found: found is None)
        ended = await NatsEndedGoals(client).find(GoalName(LOCAL, GOAL))
    assert ended is not None and ended.reason is Reason.CONCLUDED
