"""The page shows the same lines of a log as the command line."""

from __future__ import annotations

import json
from typing import Any

from ioa.client.transcript import Transcript
from ioa.ports.group_log import StoredEntry
from ioa_gateway.pagination import describe_entry
from tests.browser.looking import Looking
from tests.unit.client import golden_documents
from tests.unit.group import golden

_LINES = """async (logs) => {
    const {append, emptyStory} = await import('/page/room.js');
    return JSON.stringify(JSON.parse(logs).map((entries) => {
        const story = entries.reduce(append, emptyStory());
        return [...story.rooms.values()].flatMap((room) => room.rows).sort((a, b) => a.seq - b.seq)
            .flatMap((row) => row.lines.map((text) => [row.seq, row.speaker, row.act, text, row.tone]));
    }));
}"""


def _logs() -> list[list[StoredEntry]]:
    """Return all golden logs."""
    recorded = [golden.accepted(steps) for steps in golden.read().values()]
    return [golden_documents.LOG, *([StoredEntry(seq, entry) for seq, entry in enumerate(log, 1)] for log in recorded)]


def _documents(log: list[StoredEntry]) -> list[dict[str, Any]]:
    transcript = Transcript()
    return [describe_entry(stored, transcript) for stored in log]


def _lines(log: list[StoredEntry]) -> list[list[Any]]:
    transcript = Transcript()
    return [[one.seq, one.speaker, one.act, one.text, str(one.tone)] for stored in log for one in transcript.read(stored)]


async def test_page_shows_the_lines_of_the_command_line(looking: Looking, url: str) -> None:
    """The page and the terminal show the same lines of every recorded log."""
    logs = _logs()
    expected = [_lines(log) for log in logs]
    page = await looking.open()
    await page.goto(url)
    documents = json.dumps([_documents(log) for log in logs])
    shown = json.loads(await page.evaluate(_LINES, documents))
    assert [one for one, other in zip(shown, expected, strict=True) if one != other] == []
