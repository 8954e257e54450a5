"""Files by HTTP: whole or in part, and never as something that a browser would run."""

from __future__ import annotations

import httpx

from ioa.protocol.ids import CommId, GoalId
from tests.contract.system_client.members import Members

HOSTILE = "<script>alert(1)</script>"
ORDER = {
    "goal": "Count.",
    "agent": "ada",
    "inputs": [{"name": "a ü.html", "text": HOSTILE}, {"name": "b.csv", "text": "x,y\n1,2\n"}],
}


async def _file(http: httpx.AsyncClient, members: Members) -> str:
    """Launch a goal with files, and return where the first one is."""
    goal_id = (await http.post("/goals", json=ORDER)).json()["goal_id"]
    launched = await members.launch(GoalId(goal_id))
    assert launched.state.comm_id == CommId((await http.get(f"/goals/{goal_id}")).json()["comm_id"])
    return f"/artifacts/{goal_id}/{launched.seq}/0/a%20%C3%BC.html"


async def test_a_file_comes_whole_or_in_part(http: httpx.AsyncClient, members: Members) -> None:
    """A file is fetched by the entry that tells of it; a part of it by its bytes, and not again by who has it."""
    path = await _file(http, members)
    whole = await http.get(path)
    parts = [await http.get(path, headers={"Range": f"bytes={one}"}) for one in ("0-7", "8-", "-9", "90-", "x")]
    known = await http.get(path, headers={"If-None-Match": whole.headers["etag"]})
    assert (whole.text, known.status_code, known.content) == (HOSTILE, 304, b"")
    assert [(part.status_code, part.text) for part in parts] == [
        (206, HOSTILE[:8]),
        (206, HOSTILE[8:]),
        (206, HOSTILE[-9:]),
        (416, ""),
        (200, HOSTILE),
    ]
    assert parts[0].headers["content-range"] == f"bytes 0-7/{len(HOSTILE)}"


async def test_a_file_runs_nowhere(http: httpx.AsyncClient, members: Members) -> None:
    """What an agent made is saved, or shown as text in a sandbox that runs nothing; no browser guesses what it is."""
    path = await _file(http, members)
    saved, shown = await http.get(path), await http.get(f"{path}?view=1")
    assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20%C3%BC.html"
    assert saved.headers["content-type"] == "application/octet-stream"
    for one in (saved, shown):
        assert one.headers["content-security-policy"].startswith("sandbox; default-src 'none'"), one.headers
        assert one.headers["x-content-type-options"] == "nosniff"


async def test_no_file_is_there_that_nobody_told_of(http: httpx.AsyncClient, members: Members) -> None:
    """Another name, number, entry or goal has no file."""
    path = await _file(http, members)
    _, _, goal_id, seq, *_ = path.split("/")
    wrong = [f"{goal_id}/{seq}/0/b.csv", f"{goal_id}/{seq}/2/b.csv", f"{goal_id}/{int(seq) + 1}/0/b.csv", f"none/{seq}/0/b.csv"]
    assert [(await http.get(f"/artifacts/{one}")).status_code for one in wrong] == [404] * 4
    assert (await http.get(f"/artifacts/{goal_id}/{'9' * 30}/0/b.csv")).status_code == 422
