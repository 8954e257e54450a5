"""Answers go to whatever subject who asks has named: no permission covers that. Blamed for them is who asked."""

from __future__ import annotations

import asyncio

import pytest

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.topology import DEAD
from ioa.adapters.nkey_seeds import read_key
from ioa.ports.delivery import DeadReason
from ioa.ports.inspection import FLOOD
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId, GoalName
from tests.integration.security.secured import open_intruder, open_once
from tests.integration.security.town import EVE, SOON, USER, Town
from tests.rig.deadline import eventually

_LETTERS = 1_000
_HEARD_BY_ALL = subjects.result_of(GoalName(USER, GoalId("g1")))


@pytest.mark.parametrize("field", ["batch", "BATCH"])
@pytest.mark.parametrize("reply", ["nobody.hears", _HEARD_BY_ALL])
async def test_who_asks_is_blamed_and_not_who_is_sent_to(town: Town, field: str, reply: str) -> None:
    """Eve reads much, however she writes it, and has it sent to nobody, or to where another user listens: she is named alone."""
    request = b'{"seq":1,"next_by_subj":">","%s":%d}' % (field.encode(), _LETTERS)
    async with open_intruder(town.secured, "admin") as admin:
        js = admin.jetstream()
        await asyncio.gather(*(js.publish(subjects.dead(DeadReason.UNREADABLE), b"{}", stream=DEAD) for _ in range(_LETTERS)))
    seeds = [read_key(str(town.secured.folder / user / "seed")).seed for user in (USER, EVE)]
    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        open_once(town.secured.server.url, nkeys_seed_str=seeds[0]) as anna,
        open_once(town.secured.server.url, nkeys_seed_str=seeds[1]) as eve,
    ):
        for _ in range(3):
            await anna.subscribe(_HEARD_BY_ALL, future=MessageSink(lambda _message: None))
        await anna.flush()
        for _ in range(80):
            await eve.publish(f"$JS.API.DIRECT.GET.{DEAD}", request, reply=reply)
        slowed = await eventually(inspection.slowed, lambda found: FLOOD in {one.family for one in found}, within=SOON)
    assert [one.caller for one in slowed if one.family == FLOOD] == [EVE]
