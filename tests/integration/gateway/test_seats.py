"""People in teams by HTTP: what waits for them, and answers that count once."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, aclosing

import httpx
import pytest

from ioa.client.seat import PersonSeat
from ioa.client.watching import watch
from ioa.errors import ForbiddenError
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.messages import Conclusion, Discussion, Pass
from ioa_gateway.context import ApiCall
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import GOAL, Members
from tests.integration.gateway.desk import QUESTION, open_desk
from tests.integration.gateway.serving import Door, followed, key, open_gateway
from tests.integration.gateway.test_keys import bearer

WORDS = "Yes:\n\n  three — “at most” \u200b\t"
"""What a person may well write, and no part of which is anybody's to take away."""


def say(turn: int, **payload: object) -> dict[str, object]:
    """An answer of anna's."""
    return {"seat": "anna", "turn": turn, "payload": payload}


async def said(plane: Plane, room: CommId) -> list[str]:
    """What anna has said, in the log of a group that has ended."""
    async with watch(plane.client, room) as coming:
        log = [one.entry.event async for one in coming if isinstance(one, StoredEntry)]
    mine = [one.message.payload for one in log if isinstance(one, Said) and one.message.header.sender == "human-anna"]
    return [one.content for one in mine if isinstance(one, Discussion | Pass | Conclusion)]


async def test_a_person_answers_by_http(plane: Plane, http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """What waits is told with its form; the first answer counts, the same one again is that one by any gateway, another is late."""
    room = await open_desk(plane, members)
    [waits] = (await http.get("/seats/anna")).json()["waiting"]
    assert (waits["item"], waits["kind"], waits["told"]) == (
        f"{room}.{waits['turn']}",
        "say",
        ["You decide what is offered.", "Say what you think."],
    )
    assert (waits["go"], waits["last"], waits["goal_id"]) == (["ask"], {"sender": "ada", "content": QUESTION}, GOAL)
    assert [(one["name"], one["kind"], one["required"], one["highest"]) for one in waits["form"]] == [
        ("agrees", "yes_no", True, None),
        ("amount", "number", False, 9),
    ]
    assert {one["act"]: one["why"] for one in waits["acts"]} == {"say": "", "conclude": "from here you lead on to ask", "pass": ""}
    path, turn = f"/groups/{room}/messages", waits["turn"]
    wrong = await http.post(path, json=say(turn, text=WORDS, fields={"agrees": "perhaps"}))
    assert (wrong.status_code, wrong.json()["detail"]) == (422, "The field agrees cannot be what you say: it is true or false.")
    order = say(turn, text=WORDS, fields={"agrees": "yes"})
    async with open_gateway(plane, door) as other:
        taken = [await one.post(path, json=order) for one in (http, other, http)]
    assert {(one.status_code, one.json()["seq"]) for one in taken} == {(201, taken[0].json()["seq"])}
    late = await http.post(path, json=say(turn, text="Something else.", fields={"agrees": "no"}))
    assert (late.status_code, late.json()["type"], late.json()["legal"]) == (
        409,
        "urn:ioa:error:conflict",
        ["DISCUSSION", "PASS"],
    )
    assert (await http.post(path, json=say(turn + 1, passes=True, text="Nothing more."))).status_code == 201
    [ending] = (await http.get("/seats")).json()["waiting"]
    assert (ending["kind"], [one["act"] for one in ending["acts"] if one["legal"]]) == ("conclude", ["conclude"])
    assert (await http.post(path, json=say(ending["turn"], text="Three it is."))).status_code == 201
    assert await said(plane, room) == [WORDS, "Nothing more.", "Three it is."]
    over = await http.post(path, json=say(ending["turn"], text="Four!"))
    assert (over.status_code, over.json()["legal"], (await http.get("/seats")).json()) == (409, [], {"more": False, "waiting": []})


async def test_a_key_answers_as_whom_it_is_for(plane: Plane, http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """A key of one seat sees the goals and messages of that person only; keys with labels are in `test_visibility`."""
    room = await open_desk(plane, members)
    await door.keys.put(key("anna", "seats:anna"))
    await door.keys.put(key("eve", "seats:eve"))
    anna, eve = map(bearer, ("anna", "eve"))
    heard = (await http.get(f"/seats/anna/groups/{room}", headers=anna)).json()
    assert [(one["sender"], one["content"]) for one in heard["heard"]] == [("ada", QUESTION)]
    assert (heard["goal"], heard["members"], heard["waiting"]["kind"]) == ("Make an offer.", ["ada", "human-anna"], "say")
    waits = [(await http.get("/seats", headers=one)).json()["waiting"] for one in (anna, eve)]
    assert [len(one) for one in waits] == [1, 0]
    order = say(heard["turn"], text="Yes.", fields={"agrees": "yes"})
    assert (await http.post(f"/groups/{room}/messages", json=order, headers=eve)).status_code == 403
    asked = [f"/seats/anna/groups/{room}", "/seats/anna", f"/seats/eve/groups/{room}"]
    assert [(await http.get(one, headers=eve)).status_code for one in asked] == [403, 403, 404]
    names = [(await http.get(f"/seats/{one}")).status_code for one in ("an na", "a" * 60)]
    assert names == [422, 422]


async def test_open_turn_is_signalled_at_once(plane: Plane, http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """A follower is told that its open turns have changed long before it would read them again; another person is not."""
    await door.keys.put(key("anna", "seats:anna"))
    await door.keys.put(key("eve", "seats:eve"))
    async with (
        aclosing(followed(http, "/events?waiting=true", **bearer("anna"))) as anna,
        aclosing(followed(http, "/events?waiting=true", **bearer("eve"))) as eve,
    ):
        assert {(await anext(one)).kind for one in (anna, eve)} == {"waiting"}
        room = await open_desk(plane, members)
        async with asyncio.timeout(2):
            await anext(anna)
        [waits] = (await http.get("/seats/anna")).json()["waiting"]
        assert waits["comm_id"] == room
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(eve)
    assert (await http.get("/events?list=true", headers=bearer("anna"))).status_code == 403


async def test_seats_without_a_key_are_left_out(http: httpx.AsyncClient, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller with two seats sees the work of the seat whose key the gateway has."""
    open_seat = ApiCall.seat

    def seat(call: ApiCall, person: str) -> AbstractAsyncContextManager[PersonSeat]:
        if person == "bob":
            raise ForbiddenError("This gateway has no key of human-bob.")
        return open_seat(call, person)

    monkeypatch.setattr(ApiCall, "seat", seat)
    await door.keys.put(key("two", "seats:anna", "seats:bob"))
    answers = [await http.get(path, headers=bearer("two")) for path in ("/seats", "/seats/anna", "/seats/bob")]
    assert [one.status_code for one in answers] == [200, 200, 403]
