"""Reruns by HTTP: once per idempotency key, with the labels of the key, only of goals that the key may read."""

from __future__ import annotations

import httpx

from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.messages import Discussion
from tests.contract.system_client.members import ADA, BOB, Members

ORDER = {"goal": "Count to ten.", "agent": "ada", "labels": {"project": "sums"}}


async def _talked(http: httpx.AsyncClient, members: Members) -> tuple[str, int]:
    """Play a goal with one message; return its path and the sequence of the message."""
    launched = (await http.post("/goals", json=ORDER)).json()
    await members.launch(GoalId(launched["goal_id"]))
    return f"/goals/{launched['goal_id']}", await members.say(
        ADA, Discussion(content="Shall we count?", next_speaker=BOB), CommId(launched["comm_id"])
    )


async def test_rerun_with_the_same_key_is_one_goal(http: httpx.AsyncClient, members: Members) -> None:
    """The rerun links to the original and is found by its label; another rerun under the same key is a conflict."""
    path, seq = await _talked(http, members)
    key = {"Idempotency-Key": "once"}
    first, again = [await http.post(f"{path}/rerun", json={"at": seq, "message": "Start."}, headers=key) for _ in range(2)]
    other = await http.post(f"{path}/rerun", json={"at": seq, "message": "Stop."}, headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    shown = (await http.get(f"/goals/{first.json()['goal_id']}")).json()
    assert shown["goal"].endswith("ada (discussion): Start.")
    original = path.rsplit("/", 1)[-1]
    assert shown["labels"] == {"project": "sums", "rerun-of": original}
    listed = (await http.get(f"/goals?label=rerun-of={original}")).json()["goals"]
    assert [row["goal_id"] for row in listed] == [first.json()["goal_id"]]
