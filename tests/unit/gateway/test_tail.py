"""What the replica that tells others does with what it cannot read, and with webhooks whose key is gone."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.adapters.nats.streams.gateway_tail import TailPage
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.beside import beside
from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.events import Entry
from ioa.group.machine import step
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName
from ioa.protocol.labels import Labels
from ioa.testing.manual_clock import NEW_YEAR
from ioa_gateway.outward.tail import Tail
from tests.integration.gateway.serving import Door
from tests.rig.deadline import eventually
from tests.unit.gateway.test_webhooks import hook
from tests.unit.group.scenario import launched


def ended(goal_id: str) -> GoalResult:
    """How a goal ended."""
    at = NEW_YEAR + timedelta(hours=1)
    about: Any = {"goal_id": GoalId(goal_id), "user": LOCAL, "comm_id": CommId(f"room-{goal_id}"), "finished_at": at}
    return GoalResult(**about, reason=Reason.CONCLUDED, content="Ten.", turns=3)


class _Place:
    """Streams with two results and, behind one entry, what no process of this version can read."""

    def __init__(self) -> None:
        self.asked = list[int]()

    async def read(self) -> None:
        """Nobody holds it."""

    async def write(self, _record: object, _onto: int) -> int:
        """Take it."""
        return 1

    async def labels(self, goal: GoalName) -> Labels:
        """One goal is garbage."""
        if goal.goal_id == "broken":
            raise InvalidInputError("Garbage.")
        return {"team": "x"}

    async def results(self, after: int) -> TailPage:
        """Two."""
        found = [(number, ended(goal_id)) for number, goal_id in ((1, "broken"), (2, "whole")) if number > after]
        return TailPage(found, (), 2)

    async def entries(self, after: int) -> TailPage:
        """One, and then none that can be read."""
        self.asked.append(after)
        if after >= 4:
            raise UnavailableError("The log does not answer.")
        event = launched("ada", "bob").log[0]
        return TailPage((), [StoredEntry(4, Entry(event=event, audience=(), state=step(None, event).state))], 4)


async def test_what_cannot_be_read_holds_up_nothing_else(nats_url: str) -> None:
    """One goal that is garbage and one entry of a newer version: of all else is told, once; webhooks without a key go."""
    place, told = _Place(), list[str]()
    now = NEW_YEAR + timedelta(hours=1)
    groups: Any = SimpleNamespace()

    async def entries_before(*_of: object, **_more: object) -> list[StoredEntry]:
        return []

    groups.entries_before = entries_before
    streams: Any = place
    stands = lambda key_id: key_id != "gone"  # noqa: E731
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology().ensure(client.jetstream())
        store = NatsWebhooks(client)
        await store.put(hook("ends", labels={"team": "x"}))
        await store.put(hook("steps", events=("phase",)))
        await store.put(hook("revoked", key_id="gone"))
        await store.put(hook("young", key_id="gone", created_at=now))
        tail = Tail(streams, store, groups, stands, lambda: now, "me", lambda: 0.0, lambda one: told.append(one.goal_id))
        async with beside(tail.keep()):
            await eventually(lambda: len(place.asked) >= 2)
        notices = [notice for notice in await Door(client).notices() if notice.webhook_id != "young"]
        remaining = {one.webhook_id async for one in store.all()}
    queued = sorted((one.webhook_id, one.event.value, one.goal_id) for one in notices)
    assert queued == [("ends", "ended", "whole"), ("steps", "phase", queued[1][2])]
    assert (told, place.asked[:2]) == (["broken", "whole"], [0, 4])
    assert remaining == {"ends", "steps", "young"}
