"""Memberships, sessions and the open index of a running system whose buckets are deleted."""

from __future__ import annotations

from datetime import timedelta

from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.stores.open_group_store import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.stream import stream_names
from ioa.adapters.nats.streams.topology import MEMBERS, OPEN, SESSIONS, STREAMS, stream_of
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.concurrency import beside
from ioa.errors import IoaError, NotFoundError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.ids import PoolId
from ioa.protocol.registry import Register, Renew
from ioa_testkit.planes import open_plane
from tests.contract.system_client.members import ADA, BOB, GOAL, Members, order
from tests.rig.deadline import eventually
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import session


async def test_deleted_memberships_and_open_index_are_stored_again_when_a_timer_fires(nats_url: str) -> None:
    """They are derived from the log of the open group; when the group has ended, neither is left."""
    async with open_plane(nats_url) as plane, open_connection(NatsSettings(nats_url, "test")) as client:
        js, memberships, open_groups = client.jetstream(), NatsMemberships(client), NatsOpenGroups(client)
        members = Members(plane)
        await members.register(ADA, BOB)
        await plane.client.submit(order())
        async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=1, anybodys=False)):
            comm_id = (await members.launch()).state.comm_id
        for bucket in (MEMBERS, OPEN):
            await js.delete_stream(stream_of(bucket))
        await eventually(lambda: stream_names(client), lambda names: names >= {*STREAMS})
        assert not await open_groups.find(comm_id)

        await js.publish(subjects.timer(comm_id), b"")
        await eventually(lambda: memberships.list_groups(BOB), lambda found: found == [comm_id])
        assert await open_groups.find(comm_id)

        await plane.client.cancel(GOAL)
        await plane.client.wait_for_result(GOAL)
        await eventually(lambda: open_groups.find(comm_id), lambda found: found is None)


async def test_deleted_session_is_stored_again_when_its_agent_registers(nats_url: str) -> None:
    """A renewal requests the registration."""
    async with open_plane(nats_url), open_connection(NatsSettings(nats_url, "test")) as client:
        held, network = session("s1"), NatsAgentNetwork(client)
        register = Register(card=card(ADA), session=held, previous=held.session)
        await network.register(register)
        await client.jetstream().delete_stream(stream_of(SESSIONS))

        async def renewal() -> type[IoaError] | None:
            try:
                await network.renew(Renew(agent_id=ADA, pool=PoolId(ADA), session=held.session))
            except (NotFoundError, UnavailableError) as error:
                return type(error)
            return None

        assert await eventually(renewal, lambda raised: raised is NotFoundError, within=timedelta(seconds=30))
        await network.register(register)
        claim, _ = await NatsSessions(client).read(ADA)
        assert (claim is not None and claim.session, await renewal()) == (held, None)
