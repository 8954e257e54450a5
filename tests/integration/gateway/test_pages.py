"""The requests of a page: one stream for the list and a goal, and uploads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta

import httpx
import pytest

from ioa.client.documents import GoalRow, told
from ioa.protocol.ids import CommId, GoalId
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import Event, followed

ORDER = {"goal": "Count to ten.", "agent": "ada"}
SOON = timedelta(milliseconds=20)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the list often enough that no test waits for it."""
    monkeypatch.setattr("ioa_gateway.event_streams._LOOK", SOON)


async def _launched(http: httpx.AsyncClient, **besides: object) -> tuple[GoalId, CommId]:
    launched = (await http.post("/goals", json={**ORDER, **besides})).json()
    return GoalId(launched["goal_id"]), CommId(launched["comm_id"])


async def _until(events: AsyncIterator[Event], kind: str, **fields: object) -> list[Event]:
    """Collect events up to the first of a kind whose data has these fields."""
    seen = []
    async for event in events:
        seen.append(event)
        if event.kind == kind and fields.items() <= event.data.items():
            return seen
    raise AssertionError("the stream has ended")


async def test_one_stream_tells_of_the_list_and_of_a_room(http: httpx.AsyncClient, members: Members, plane: Plane) -> None:
    """The stream has each changed row of the list and all entries of the goal."""
    goal_id, room = await _launched(http)
    await members.launch(goal_id)
    async with aclosing(followed(http, f"/events?list=true&goal={goal_id}")) as events:
        first = await _until(events, "goal", goal_id=goal_id)
        other, _ = await _launched(http, goal="Count to nine.")
        later = await _until(events, "goal", goal_id=other)
        await members.conclude(ADA, "Ten.", room)
        seen = [*first, *later, *await _until(events, "goal", goal_id=goal_id, status="concluded")]
        while seen[-1].data["result"] is None:  # the result follows the group's end
            seen += await _until(events, "goal", goal_id=goal_id, status="concluded")
        row = seen[-1].data
        if "end" not in {event.kind for event in seen}:  # the row and the end have no order
            seen += await _until(events, "end")
    log = [entry["seq"] for entry in (await http.get(f"/goals/{goal_id}/entries")).json()["entries"]]
    assert [event.seq for event in seen if event.kind == "entry"] == log
    assert row == told(GoalRow.of(await plane.client.goal(goal_id)))
    assert (await http.get("/events")).status_code == 422


async def test_a_list_goes_on_behind_the_end_of_a_room(http: httpx.AsyncClient, members: Members) -> None:
    """A page that comes back to a goal that has ended still hears of other goals by the same stream."""
    goal_id, room = await _launched(http)
    await members.launch(goal_id)
    await members.conclude(ADA, "Ten.", room)
    async with aclosing(followed(http, f"/events?list=true&goal={goal_id}", **{"Last-Event-ID": "1"})) as events:
        await _until(events, "end", phase="concluded")
        other, _ = await _launched(http, goal="Count to nine.")
        assert (await _until(events, "goal", goal_id=other))[-1].data["goal"] == "Count to nine."
    alone = [event async for event in followed(http, f"/events?goal={goal_id}")]
    assert (alone[-1].kind, (await http.get(f"/events?goal={goal_id}&after={alone[-1].seq}")).status_code) == ("end", 204)
    assert (await http.get("/events?list=true&goal=none")).status_code == 404


async def test_a_file_is_sent_as_it_comes_and_given_to_a_goal(http: httpx.AsyncClient, members: Members) -> None:
    """What a program uploads is an input of the goal that names it, byte for byte."""
    data = bytes(range(256)) * 5_000

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 100_000):
            yield data[start : start + 100_000]

    stored = await http.put("/uploads/all%20bytes.bin", content=parts())
    goal_id, _ = await _launched(http, inputs=[stored.json()])
    seq = (await members.launch(goal_id)).seq
    path = f"/artifacts/{goal_id}/{seq}/0/all%20bytes.bin"
    assert (stored.status_code, stored.json()["media_type"], (await http.get(path)).content == data) == (
        201,
        "application/octet-stream",
        True,
    )
