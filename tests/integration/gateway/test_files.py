"""Files by HTTP: whole or as a range, and never as a script of a browser."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from structlog.testing import capture_logs

from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.setup.file_requests import PIECE_BYTES, FilePiece, GetFile
from ioa_groups.group_files import FileService
from tests.contract.system_client.members import Members
from tests.integration.gateway.serving import Door, key, sign_in
from tests.integration.gateway.test_keys import bearer, revoke
from tests.rig.deadline import eventually

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


async def test_file_is_sent_whole_or_as_range(http: httpx.AsyncClient, members: Members) -> None:
    """A file is fetched by its entry; a range by its bytes; a client with the same ETag gets 304."""
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


async def test_browser_shows_no_file_after_signing_out(http: httpx.AsyncClient, members: Members) -> None:
    """A browser revalidates its copy of a file, and drops the copy when its user signs out."""
    path = await _file(http, members)
    await sign_in(http)
    del http.headers["authorization"]
    seen = path
    shown = await http.get(seen)
    known = await http.get(seen, headers={"If-None-Match": shown.headers["etag"]})
    ended = await http.delete("/session")
    after = await http.get(seen, headers={"If-None-Match": shown.headers["etag"]})
    assert (shown.headers["cache-control"], known.status_code) == ("private, no-cache", 304)
    assert (ended.headers["clear-site-data"], after.status_code) == ('"cache"', 401)


async def test_file_is_never_executed_by_a_browser(http: httpx.AsyncClient, members: Members) -> None:
    """Files of agents are saved, or shown as text in a sandbox without scripts; browsers do not guess their types."""
    path = await _file(http, members)
    saved, shown = await http.get(path), await http.get(f"{path}?view=1")
    assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20%C3%BC.html"
    assert saved.headers["content-type"] == "application/octet-stream"
    for one in (saved, shown):
        assert one.headers["content-security-policy"].startswith("sandbox; default-src 'none'"), one.headers
        assert one.headers["x-content-type-options"] == "nosniff"


async def test_unknown_file_is_not_found(http: httpx.AsyncClient, members: Members) -> None:
    """Another name, number, entry or goal has no file."""
    path = await _file(http, members)
    _, _, goal_id, seq, *_ = path.split("/")
    wrong = [f"{goal_id}/{seq}/0/b.csv", f"{goal_id}/{seq}/2/b.csv", f"{goal_id}/{int(seq) + 1}/0/b.csv", f"none/{seq}/0/b.csv"]
    assert [(await http.get(f"/artifacts/{one}")).status_code for one in wrong] == [404] * 4
    for seq, number in (("9" * 30, "0"), ("1", "9" * 5_000), ("x", "0")):
        assert (await http.get(f"/artifacts/{goal_id}/{seq}/{number}/b.csv")).status_code == 422


@pytest.mark.parametrize(("size", "statuses"), [(10, [422, 404]), (3_000_000, [0, 0])])
async def test_file_with_a_false_size_is_never_sent_whole(
    http: httpx.AsyncClient, members: Members, caplog: pytest.LogCaptureFixture, size: int, statuses: list[int]
) -> None:
    """The request of a small file is an error, the response of a large file breaks off."""
    stored = (await http.put("/uploads/a.bin", content=b"x" * size)).json()
    false = [{**stored, "name": f"{more}.bin", "size_bytes": size + more} for more in (-5, 5)]
    goal_id = (await http.post("/goals", json={"goal": "Count.", "agent": "ada", "inputs": false})).json()["goal_id"]
    seq = (await members.launch(GoalId(goal_id))).seq
    found = list[int]()
    with capture_logs() as logs:
        for number, one in enumerate(false):
            try:
                found.append((await http.get(f"/artifacts/{goal_id}/{seq}/{number}/{one['name']}")).status_code)
            except httpx.TransportError:
                found.append(0)
    assert found == statuses
    assert [one["event"] for one in logs if one["log_level"] != "info"] == ["response_aborted"] * statuses.count(0)
    assert [one for one in caplog.records if one.exc_info] == []


_PIECES_READ = 3


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> asyncio.Semaphore:
    """Return the permits for reading pieces of files, which group setup uses from its start."""
    permits, get = asyncio.Semaphore(_PIECES_READ), FileService.get

    async def get_file(files: FileService, request: GetFile) -> FilePiece:
        await permits.acquire()
        return await get(files, request)

    monkeypatch.setattr(FileService, "get", get_file)
    return permits


async def test_download_ends_with_its_key(pieces: asyncio.Semaphore, http: httpx.AsyncClient, members: Members, door: Door) -> None:
    """The gateway sends no further piece of a file after the reader's key was revoked."""
    await door.keys.put(key("thief"))
    stored = (await http.put("/uploads/a.bin", content=b"x" * (8 * PIECE_BYTES))).json()
    goal_id = (await http.post("/goals", json={"goal": "Count.", "agent": "ada", "inputs": [stored]})).json()["goal_id"]
    path = f"/artifacts/{goal_id}/{(await members.launch(GoalId(goal_id))).seq}/0/a.bin"

    async def download() -> int:
        size = 0
        async with http.stream("GET", path, headers=bearer("thief")) as answer:
            with pytest.raises(httpx.TransportError):
                async for part in answer.aiter_bytes():
                    size += len(part)
        return size

    async with asyncio.TaskGroup() as group:
        downloading = group.create_task(download())
        await eventually(pieces.locked)
        await revoke(http, door, "thief")
        for _ in range(8):
            pieces.release()
    assert downloading.result() <= _PIECES_READ * PIECE_BYTES
