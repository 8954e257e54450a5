"""nats-server comes back with an empty store, and what was purged by hand stays ended: everybody goes on by themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.adapters.nats.streams.topology import LOG, RESULTS
from ioa.protocol import subjects
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, comm_id_of_goal
from tests.rig.fleet import ROUTERS, Fleet

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine


async def test_a_success_whose_log_was_purged_stays_one(fleet: Fleet) -> None:
    """Routers that start when the log of an ended goal is gone, and later its result too, write neither an entry nor a result."""
    js, goal_id = fleet.client.jetstream(), GoalId("purged")
    await fleet.publish(goal_id, "mixed", timeout=timedelta(seconds=20))
    evidence = await fleet.evidence()
    reasons = [result.reason for result in evidence.results]
    left = []
    for stream, subject in ((LOG, subjects.log(comm_id_of_goal(goal_id))), (RESULTS, subjects.result_of(GoalName(LOCAL, goal_id)))):
        await js.purge_stream(stream, subject=subject)
        for router in ROUTERS:
            await fleet.kill(router)
        await fleet.start(*ROUTERS)
        other = GoalId(f"after-{stream}")
        fleet.goals.clear()
        await fleet.publish(other, "mixed")
        await fleet.rest()
        left.append(list((await js.stream_info(stream, subjects_filter=subject)).state.subjects or {}))
    assert (reasons, left) == ([Reason.CONCLUDED], [[], []])
