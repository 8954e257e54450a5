"""What the replica that tells others does with what it cannot read, and with webhooks whose key is gone."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from ioa.adapters.nats.tail import TailPage
from ioa.beside import beside
from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.events import Entry
from ioa.group.machine import step
from ioa.group.state import Ended
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName
from ioa.protocol.labels import Labels
from ioa.testing.manual_clock import NEW_YEAR
from ioa.testing.memory_webhooks import MemoryWebhooks
from ioa_gateway.outward.tail import Tail
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


class _Talkative(_Place):
    """Streams in which one goal has many turns and ends then, and another one goes on."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns, self.read_labels = turns, Counter[str]()

    async def labels(self, goal: GoalName) -> Labels:
        """It has one."""
        self.read_labels[goal.goal_id] += 1
        return {"team": "x"}

    async def results(self, after: int) -> TailPage:
        """None."""
        return TailPage((), (), after)

    async def entries(self, after: int) -> TailPage:
        """All at once, turn by turn of both."""
        self.asked.append(after)
        if after:
            return TailPage((), (), after)
        event = launched("ada", "bob").log[0]
        state = step(None, event).state
        found = list[StoredEntry]()
        for goal_id in ("ends", "goes-on"):
            name = GoalName(state.user, GoalId(goal_id))
            one = state.model_copy(update={"goal_id": name.goal_id, "comm_id": name.comm_id})
            turns = [one.model_copy(update={"turn": turn}) for turn in range(1, self.turns + 1)]
            if goal_id == "ends":
                turns[-1] = turns[-1].model_copy(
                    update={"stage": Ended(reason=Reason.CONCLUDED, content="Ten.", ended_at=NEW_YEAR)}
                )
            found += [
                StoredEntry(seq, Entry(event=event, audience=(), state=turn)) for seq, turn in enumerate(turns, len(found) + 1)
            ]
        return TailPage((), found, len(found))


async def test_the_labels_of_a_goal_are_read_once() -> None:
    """Not for each turn, of which there are dozens a second, since a record may be large; nor are they kept once it has ended."""
    place, store = _Talkative(200), MemoryWebhooks()
    for team in ("x", "y"):
        await store.put(hook(team, events=("turn",), labels={"team": team}))
    streams: Any = place
    groups: Any = SimpleNamespace()

    async def entries_before(*_of: object, **_more: object) -> list[StoredEntry]:
        return []

    groups.entries_before = entries_before
    tail = Tail(streams, store, groups, lambda _key_id: True, lambda: NEW_YEAR, "me", lambda: 0.0, lambda _one: None)
    async with beside(tail.keep()):
        await eventually(lambda: len(place.asked) >= 2, within=timedelta(seconds=30))
    assert Counter(one.webhook_id for one in store.queued) == {"x": 400}
    assert place.read_labels == {"ends": 1, "goes-on": 1}
    assert len(tail._labels) == 1


async def test_what_cannot_be_read_holds_up_nothing_else() -> None:
    """One goal that is garbage and one entry of a newer version: of all else is told, once; webhooks without a key go."""
    place, store, told = _Place(), MemoryWebhooks(), list[str]()
    now = NEW_YEAR + timedelta(hours=1)
    await store.put(hook("ends", labels={"team": "x"}))
    await store.put(hook("steps", events=("phase",)))
    await store.put(hook("revoked", key_id="gone"))
    await store.put(hook("young", key_id="gone", created_at=now))
    groups: Any = SimpleNamespace()

    async def entries_before(*_of: object, **_more: object) -> list[StoredEntry]:
        return []

    groups.entries_before = entries_before
    streams: Any = place
    stands = lambda key_id: key_id != "gone"  # noqa: E731
    tail = Tail(streams, store, groups, stands, lambda: now, "me", lambda: 0.0, lambda one: told.append(one.goal_id))
    async with beside(tail.keep()):
        await eventually(lambda: len(place.asked) >= 2)
    queued = sorted((one.webhook_id, one.event.value, one.goal_id) for one in store.queued if one.webhook_id != "young")
    assert queued == [("ends", "ended", "whole"), ("steps", "phase", queued[1][2])]
    assert (told, place.asked[:2]) == (["broken", "whole"], [0, 4])
    assert {one.webhook_id async for one in store.all()} == {"ends", "steps", "young"}
