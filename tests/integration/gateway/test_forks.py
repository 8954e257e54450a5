"""Forks by HTTP: a new goal goes on from an entry of another one, once however often it is sent, and says where it comes from."""

from __future__ import annotations

from datetime import timedelta

import httpx

from ioa.client.history import conversation
from ioa.client.replay import replayed
from ioa.protocol.ids import CommId, GoalId, comm_id_of_goal
from ioa.protocol.messages import Discussion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import Door, key
from tests.integration.gateway.test_keys import bearer

ORDER = {"goal": "Count to ten.", "agent": "ada", "max_tokens": 9_000, "max_cost": 1.5}


async def _talked(http: httpx.AsyncClient, members: Members) -> tuple[str, int, int]:
    """A goal whose members talk: where it is, and the sequences of what ada and bob have said."""
    launched = (await http.post("/goals", json=ORDER)).json()
    await members.launch(GoalId(launched["goal_id"]))
    room = CommId(launched["comm_id"])
    first = await members.say(ADA, Discussion(content="Shall we count?", next_speaker=BOB), room)
    second = await members.say(BOB, Discussion(content="Let us.", next_speaker=ADA), room)
    return f"/goals/{launched['goal_id']}", first, second


async def test_a_goal_is_forked_at_an_entry_in_other_words(http: httpx.AsyncClient, members: Members, plane: Plane) -> None:
    """The new goal has its own log, which replays, and its own end; the one it comes from stays where it was."""
    path, first, second = await _talked(http, members)
    before = await conversation(plane.client, comm_id_of_goal(GoalId(path.rsplit("/", 1)[-1])))
    forked = await http.post(f"{path}/fork", json={"at": first, "say": "Shall we count backwards?"})
    assert forked.status_code == 201
    shown = (await http.get(f"/goals/{forked.json()['goal_id']}")).json()
    origin = {"goal_id": path.rsplit("/", 1)[-1], "at": first}
    assert shown["forked_from"] == {**origin, "say": "Shall we count backwards?", "replace": []}
    assert (shown["max_tokens"], shown["max_cost_micros"], shown["turns_taken"]) == (9_000, 1_500_000, 1)
    room = CommId(forked.json()["comm_id"])
    log = [*replayed(await conversation(plane.client, room))]
    assert [stored.entry.event.type for stored in log] == ["group_launched", "said", "timer_fired"]
    assert "backwards" in log[1].entry.event.model_dump_json() and log[-1].entry.state.floor_holder == BOB
    await members.say(BOB, Discussion(content="Ten, nine.", next_speaker=ADA), room)
    await members.conclude(ADA, "One.", room)
    result = (await http.get(f"/goals/{forked.json()['goal_id']}/result?wait=5")).json()
    assert (result["reason"], result["forked_from"]) == ("concluded", origin)
    assert await conversation(plane.client, before[0].entry.state.comm_id) == before
    assert (await http.get(path)).json()["result"] is None and second > first


async def test_the_same_key_is_the_same_fork(http: httpx.AsyncClient, members: Members) -> None:
    """Who has lost the answer sends it again; another fork under the key is a conflict."""
    path, first, second = await _talked(http, members)
    key = {"Idempotency-Key": "once more"}
    one, again = [await http.post(f"{path}/fork", json={"at": second}, headers=key) for _ in range(2)]
    other = await http.post(f"{path}/fork", json={"at": first}, headers=key)
    assert (one.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert one.json() == again.json() and len((await http.get("/goals")).json()["goals"]) == 2


async def test_whoever_is_found_takes_ones_place_and_a_repetition_finds_nobody_else(
    http: httpx.AsyncClient, members: Members, plane: Plane
) -> None:
    """By the card of who is replaced; the record says who it is."""
    path, _, second = await _talked(http, members)
    await members.register("eve", "zoe")  # type: ignore[arg-type]
    key = {"Idempotency-Key": "another"}
    order = {"at": second, "replace": {"bob": None}}
    one, again = [await http.post(f"{path}/fork", json=order, headers=key) for _ in range(2)]
    assert (one.status_code, again.status_code, one.json()) == (201, 200, again.json())
    [replaced] = (await http.get(f"/goals/{one.json()['goal_id']}")).json()["forked_from"]["replace"]
    assert replaced["old"] == "bob" and replaced["new"] in ("eve", "zoe")
    state = (await plane.client.group(CommId(one.json()["comm_id"]))).state
    assert [member.agent_id for member in state.members] == ["ada", replaced["new"]]


async def test_what_cannot_be_forked_says_why(http: httpx.AsyncClient, members: Members) -> None:
    """No such goal, no such entry, an entry that nobody has said, who is no member, and one that has ended."""
    path, _, second = await _talked(http, members)
    wrong = [
        await http.post("/goals/nothing/fork", json={"at": second}),
        await http.post(f"{path}/fork", json={"at": 10**9}),
        await http.post(f"{path}/fork", json={"at": 1, "say": "x"}),
        await http.post(f"{path}/fork", json={"at": second, "replace": {"zoe": "eve"}}),
        await http.post(f"{path}/fork", json={"at": 0}),
        await http.post(f"{path}/fork", json={"at": second, "goal": "Another."}),
    ]
    assert [one.status_code for one in wrong] == [404, 409, 409, 409, 422, 422]
    assert "no entry 1000000000 yet" in wrong[1].json()["detail"] and "no member" in wrong[3].json()["detail"]
    await members.conclude(ADA, "Ten.", comm_id_of_goal(GoalId(path.rsplit("/", 1)[-1])))
    assert (await http.post(f"{path}/fork", json={})).status_code == 409


async def test_nobody_forks_what_he_may_not_see(http: httpx.AsyncClient, members: Members, door: Door) -> None:
    """A key with labels sees goals that bear them, and forks no other one, by whichever route; forks bear them."""
    path, _, second = await _talked(http, members)
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    door.clock.advance(timedelta(seconds=2))
    by_fork = await http.post(f"{path}/fork", json={"at": second}, headers=bearer("team"))
    fork = {"goal_id": path.rsplit("/", 1)[-1], "at": second}
    by_launch = await http.post("/goals", json={**ORDER, "forked_from": fork}, headers=bearer("team"))
    assert (by_fork.status_code, by_launch.status_code) == (404, 422)
    own = (await http.post("/goals", json={**ORDER, "labels": {"run": "7"}}, headers=bearer("team"))).json()
    await members.launch(GoalId(own["goal_id"]))
    forked = (await http.post(f"/goals/{own['goal_id']}/fork", json={}, headers=bearer("team"))).json()
    assert (await http.get(f"/goals/{forked['goal_id']}", headers=bearer("team"))).json()["labels"] == {"team": "x", "run": "7"}


async def test_a_key_that_reads_no_goals_forks_none(http: httpx.AsyncClient, members: Members, door: Door) -> None:
    """A copy is shown to whoever is put into it, so that forking is reading."""
    path, first, _ = await _talked(http, members)
    await door.keys.put(key("write", "goals:write"))
    door.clock.advance(timedelta(seconds=2))
    forked = await http.post(f"{path}/fork", json={"at": first, "replace": {"bob": "eve"}}, headers=bearer("write"))
    absent = await http.post("/goals/none/fork", json={"at": first}, headers=bearer("write"))
    assert (forked.status_code, forked.json()) == (403, absent.json())
    assert len((await http.get("/goals")).json()["goals"]) == 1


async def test_fork_with_repeated_idempotency_key_returns_the_first_fork(http: httpx.AsyncClient, members: Members) -> None:
    """A fork without a sequence keeps its first sequence after the original goal continues or ends."""
    path, _, second = await _talked(http, members)
    key = {"Idempotency-Key": "from here"}
    one = await http.post(f"{path}/fork", json={}, headers=key)
    room = comm_id_of_goal(GoalId(path.rsplit("/", 1)[-1]))
    await members.say(ADA, Discussion(content="Three.", next_speaker=BOB), room)
    again = await http.post(f"{path}/fork", json={}, headers=key)
    await members.say(BOB, Discussion(content="Four.", next_speaker=ADA), room)
    await members.conclude(ADA, "Ten.", room)
    at_last = await http.post(f"{path}/fork", json={}, headers=key)
    assert [one.status_code, again.status_code, at_last.status_code] == [201, 200, 200]
    assert one.json() == again.json() == at_last.json()
    assert (await http.get(f"/goals/{one.json()['goal_id']}")).json()["forked_from"]["at"] == second
