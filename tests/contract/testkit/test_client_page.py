"""The examples of docs/client.md work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ioa_testkit import System
from tests.contract.testkit.agents import counter, translator
from tests.packaging.readme_session import blocks_of

_PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")


def functions() -> dict[str, Any]:
    """What the blocks of the page define."""
    defined: dict[str, Any] = {}
    for block in blocks_of(_PAGE):
        exec(compile(block.body, f"client.md:{block.line}", "exec", dont_inherit=True), defined)
    return defined


async def _lines() -> AsyncIterator[bytes]:
    for number in range(3):
        yield b"line %d\n" % number


async def test_the_examples_of_the_page_run(ioa_system: System, tmp_path: Path) -> None:
    """Files go and come, an interrupted follower goes on, a conversation is read from its end, and labels find goals."""
    example, file = functions(), tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    async with ioa_system.serve(translator(), counter()) as running:
        client = running.client
        told = await example["sum_up"](client, file, tmp_path)
        assert (told.startswith("concluded: "), "2 lines" in told, (tmp_path / "menu.txt").read_text()) == (True, True, "pain")
        [status] = (await client.goals()).goals
        goal_id = status.record.goal.goal_id
        entries = await client.entries(goal_id)
        assert await example["follow"](client, goal_id, entries[2].seq) == entries[-1].seq
        assert await example["scroll_up"](client, goal_id) == entries and len(entries) > 5
        spoke = await example["who_spoke_at"](client, goal_id, entries[0].seq)
        assert spoke == {entries[0].entry.state.comm_id: entries[0].entry.state.floor_holder}
        assert await example["of_team"](client, "x") == ["Translate soup into French"]
        assert await example["count"](client, _lines()) == "3 lines, b'line ' and so on"
