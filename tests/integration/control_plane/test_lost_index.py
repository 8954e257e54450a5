"""Memberships and the open index of a running system whose buckets are deleted."""

from __future__ import annotations

from ioa.adapters.nats.stores.open_groups import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.streams.stream import stream_names
from ioa.adapters.nats.streams.topology import MEMBERS, OPEN, STREAMS, stream_of
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId
from ioa_testkit.planes import open_plane
from tests.integration.control_plane.conversation import ADA, BOB, Caller
from tests.rig.deadline import eventually

_GOAL = GoalId("goal-1")


async def test_deleted_memberships_and_open_index_are_stored_again_when_a_timer_fires(nats_url: str) -> None:
    """They are derived from the log of the open group; when the group has ended, neither is left."""
    async with open_plane(nats_url) as plane, open_connection(NatsSettings(nats_url, "test")) as client:
        js, memberships, open_groups = client.jetstream(), NatsMemberships(client), NatsOpenGroups(client)
        caller = Caller(client)
        await caller.register(ADA, BOB)
        await caller.publish_goal(_GOAL)
        comm_id = (await caller.launch(_GOAL, ADA, BOB)).state.comm_id
        for bucket in (MEMBERS, OPEN):
            await js.delete_stream(stream_of(bucket))
        await eventually(lambda: stream_names(client), lambda names: names >= {*STREAMS})
        assert not await open_groups.find(comm_id)

        await js.publish(subjects.timer(comm_id), b"")
        await eventually(lambda: memberships.list_groups(BOB), lambda found: found == [comm_id])
        assert await open_groups.find(comm_id)

        await plane.client.cancel(_GOAL)
        await plane.client.wait_for_result(_GOAL)
        await eventually(lambda: open_groups.find(comm_id), lambda found: found is None)
