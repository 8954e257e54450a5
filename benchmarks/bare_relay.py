"""A relay that stores, answers and passes on every message, and decides nothing: what is left of a router without its rules.

    python -m benchmarks.bare_relay

It takes the same shortcuts on the same client library as a router (`nats_sinks`, `nats_acks`), so that what it carries is the
most that a router in this language and with this client could carry on the machine. `benchmarks.saturation` runs it beside one.
"""

from __future__ import annotations

import asyncio
import secrets

import msgpack
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header

from benchmarks.silent_groups import NONCE
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.nats.wire.subscriptions import MessageSink
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, CommId
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.process import StopSignal, run_process

_PING = "$SRV.PING.benchmarks.bare-relay"
_QUEUE = "bare-relay"
_ENTRY = b"x" * 1_650
"""As large as the log entries of silent groups."""


class _Channel:
    """A group: its members, and the sequence of its last entry."""

    def __init__(self, members: list[AgentId], seq: int) -> None:
        self.members = members
        self.seq = seq


class BareRelay:
    """Append, push to every other member, answer."""

    def __init__(self, client: Client, group: asyncio.TaskGroup, name: str) -> None:
        self._client = client
        self._log = NatsGroupLog(client)
        self._js = client.jetstream()
        self._group = group
        self._name = name
        self._channels: dict[CommId, _Channel] = {}

    def take(self, message: Msg) -> None:
        """Pass a message on, beside others."""
        self._group.create_task(self._relay(message))

    async def _relay(self, message: Msg) -> None:
        comm_id, speaker = subjects.parse_say(message.subject)
        channel = self._channels.get(comm_id) or await self._open(comm_id)
        headers = {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(channel.seq)}
        channel.seq = (await self._js.publish(subjects.log(comm_id), _ENTRY, headers=headers)).seq
        push = msgpack.packb({"seq": channel.seq, "entry": _ENTRY})
        for agent_id in channel.members:
            if agent_id != speaker:
                await self._client.publish(subjects.inbox(agent_id, NONCE), push, reply=self._name)
        answer = msgpack.packb({"answer": {"outcome": "accepted", "seq": channel.seq, "entry": _ENTRY}})
        await self._client.publish(message.reply, answer)

    async def _open(self, comm_id: CommId) -> _Channel:
        head = await self._log.last(comm_id)
        assert head is not None, comm_id
        members = [member.agent_id for member in head.entry.state.members]
        channel = self._channels[comm_id] = _Channel(members, head.seq)
        return channel


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Relay until `stop` is set."""
    async with open_connection(settings.nats("bare-relay")) as client, asyncio.TaskGroup() as group:
        name = f"relay-{secrets.token_hex(8)}"
        relay = BareRelay(client, group, name)

        async def pong(message: Msg) -> None:
            await client.publish(message.reply, name.encode())

        await client.subscribe(subjects.ANY_SAY, queue=_QUEUE, future=MessageSink(relay.take))
        await client.subscribe(subjects.any_say_to(name), future=MessageSink(relay.take))
        await client.subscribe(_PING, cb=pong)
        await stop.wait()


if __name__ == "__main__":
    run_process(ControlPlaneSettings, serve)
