"""One user fills what all share with few messages, while an honest one launches goals: only the one is refused, and named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import APIError

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.orders import drop_orders
from ioa.adapters.nats.system_client import open_system
from ioa.adapters.nats.topology import GOALS
from ioa.beside import beside
from ioa.cli.examination import quotas_finding
from ioa.errors import NotFoundError, RateLimitedError
from ioa.group.requests import CancelGroup
from ioa.ports.inspection import FILLING_QUEUE, FILLING_STORE
from ioa.ports.store_room import SUBJECT_BYTES
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalId, UserId
from ioa.protocol.subjects import goal_of, goal_to
from tests.integration.security.secured import open_intruder, open_secured, told_of, until_told
from tests.integration.security.town import BOB, MALLORY, SLACK_SECONDS, SOON, Town, open_town_on
from tests.rig.deadline import eventually

EVE = UserId("eve")
_STORE_BYTES = 20_000_000
_OPEN = 100


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A system with a small store."""
    async with _open_town(tmp_path, _STORE_BYTES) as opened:
        yield opened


@asynccontextmanager
async def _open_town(folder: Path, store_bytes: int) -> AsyncIterator[Town]:
    async with open_secured(folder, (BOB, MALLORY)) as secured:
        bounded = replace(secured, told={"IOA_STORE_BYTES": str(store_bytes)})
        async with open_town_on(bounded, (BOB, MALLORY)) as opened:
            yield opened


async def _fill(eve: Client, town: Town) -> Callable[[int], Awaitable[None]]:
    """Fill what all goals wait in, and return what publishes one more of so many bytes, which nobody leads."""
    numbers, size = count(), 120_000

    async def publish(size_bytes: int = 0) -> None:
        to = MALLORY if size_bytes == 0 else AgentId(f"nobody{next(numbers) % 50}")
        data = json.dumps({"goal_id": f"eve-{next(numbers)}", "goal": "Wait."}).encode()
        await eve.jetstream().publish(goal_to(EVE, to), data.ljust(size_bytes))

    for _ in range(_OPEN):
        await publish()
    await eventually(lambda: town.agents[MALLORY].given.names, within=SOON)
    while size > 80:
        try:
            await publish(size)
        except APIError:
            size //= 2
    return publish


async def test_whose_goals_fill_what_all_wait_in_is_refused_and_nobody_else(town: Town) -> None:
    """A hundred that nobody leads, others behind them, and the last bytes by small ones: launches were refused to all."""
    usual = await town.lead_some()
    async with open_intruder(town.secured, "eve") as eve, open_intruder(town.secured, "admin") as admin:
        await _fill(eve, town)
        took = await town.lead_some()
        stored = (await admin.jetstream().stream_info(GOALS)).state.bytes
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection:
        found = [one for one in await told_of(inspection) if one.family in (FILLING_QUEUE, FILLING_STORE)]
    assert [(one.caller, one.family) for one in found] == [("eve", FILLING_QUEUE)]
    assert "Filling what all goals wait in, and refused: eve" in quotas_finding(found).message
    assert (took <= 3 * usual + SLACK_SECONDS, stored < _STORE_BYTES // 10) == (True, True), (
        f"undisturbed {usual:.3f} s, {took:.3f} s"
    )


async def test_goals_that_fill_it_by_their_subjects_are_those_of_who_has_published_them(town: Town) -> None:
    """They have no bytes: by those others' goals were told to have filled it, and refused, or nobody's, and all were refused."""
    usual = await town.lead_some()
    async with open_intruder(town.secured, "eve") as eve, open_intruder(town.secured, "admin") as admin:
        for number in range(_OPEN):
            data = json.dumps({"goal_id": f"eve-{number}", "goal": "Wait."}).encode()
            await eve.jetstream().publish(goal_to(EVE, MALLORY), data)
        await eventually(lambda: town.agents[MALLORY].given.names, within=SOON)
        size, numbers = 59, count(10_000)
        for _ in range(14_000):
            await eve.publish(f"{goal_of(EVE)}.{next(numbers)}{'a' * size}", b"")
        await eve.flush(SOON.seconds)
        while size > 1:
            try:
                await eve.jetstream().publish(f"{goal_of(EVE)}.{next(numbers)}{'a' * size}", b"")
            except APIError:
                size //= 2
        took = await town.lead_some()
        stored = (await admin.jetstream().stream_info(GOALS)).state.bytes
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection:
        found = [one.caller for one in await told_of(inspection) if one.family == FILLING_QUEUE]
    assert (found, took <= 3 * usual + SLACK_SECONDS, stored < _STORE_BYTES // 10) == (["eve"], True, True), (
        f"undisturbed {usual:.3f} s, {took:.3f} s"
    )


@pytest.mark.slow
async def test_goals_on_record_of_one_user_leave_room_for_others(town: Town) -> None:
    """They wait when he has as much as all others have left; nobody else does."""
    usual = await town.lead_some()
    async with open_system(town.secured.settings("eve"), patience=SOON) as client, open_intruder(town.secured, "eve") as eve:
        assert await client.user() == EVE

        async def fill() -> set[str]:
            for number in range(4):
                data = json.dumps({"goal": f"{number}" + "\U00010348" * 31_000}, ensure_ascii=False).encode()
                try:
                    await eve.jetstream().publish(goal_to(EVE, AgentId(f"nobody{number}")), data)
                except APIError:
                    break
            async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection:
                return {one.family for one in await told_of(inspection) if one.caller == EVE}

        await eventually(fill, lambda families: FILLING_STORE in families, within=timedelta(seconds=180))
        took = await town.lead_some()
        standing = {one.name: one.stored_bytes for one in (await client.standing()).streams}
    assert standing["KV_IOA_GOAL_RECORDS"] < _STORE_BYTES // 2
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"


@pytest.mark.slow
async def test_a_goal_of_which_nothing_is_kept_ends_for_who_has_launched_it(town: Town) -> None:
    """By what his client finds with an ordinary user's key: his goal waits no more, and is nowhere else. One that waits goes on."""
    async with open_system(town.secured.settings("eve"), patience=SOON) as client, open_intruder(town.secured, "admin") as admin:
        for _ in range(_OPEN + 1):
            goal_id = await client.launch(GoalOrder(goal="Wait.", agent=MALLORY))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(6.0):
                await client.wait_for_result(goal_id)
        assert await client.result(goal_id) is None
        await drop_orders(admin.jetstream(), EVE)
        async with asyncio.timeout(30.0):
            result = await client.wait_for_result(goal_id)
    assert (result.reason, result.content.partition(":")[0]) == (Reason.FAILED, "The goal was not accepted")


@pytest.mark.slow
async def test_goals_that_are_cancelled_at_once_fill_the_store_by_their_number(tmp_path: Path) -> None:
    """The server keeps their subjects in its memory: as long as bytes alone counted, six tenths of what the store may hold."""
    store = 4_000_000
    async with (
        _open_town(tmp_path, store) as town,
        open_system(town.secured.settings("eve"), patience=SOON) as client,
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
    ):
        usual = await town.lead_some()

        async def is_cancelled(goal_id: GoalId) -> bool:
            with suppress(NotFoundError):  # it is not on record yet
                await client.cancel(CancelGroup(goal_id=goal_id))
                return True
            return False

        async def go_on() -> None:
            while True:
                with suppress(RateLimitedError):
                    goal_id = await client.launch(GoalOrder(goal="Wait.", agent=MALLORY))
                    await eventually(partial(is_cancelled, goal_id), within=SOON)

        async with beside(*(go_on() for _ in range(4))):
            await until_told(
                inspection,
                lambda found: any(one.caller == EVE and one.family == FILLING_STORE for one in found),
                within=timedelta(seconds=60),
            )
            kept = {one.name: one.messages for one in (await client.standing()).streams}
            took = await town.lead_some()
    assert 3 * kept["KV_IOA_GOAL_RECORDS"] * SUBJECT_BYTES < store // 2
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"
