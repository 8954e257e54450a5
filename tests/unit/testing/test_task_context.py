"""The task context that agents' own tests use."""

from __future__ import annotations

from pathlib import Path

from ioa.protocol.ids import AgentId
from ioa.protocol.search import Filters, Need, Search, SearchResult
from ioa.testing.task_context import RecordingContext


async def test_searches_are_recorded_and_answered(tmp_path: Path) -> None:
    """A search is answered at once with what the test has put there."""
    found = SearchResult(by_need=(), merged=())
    context = RecordingContext(tmp_path, found=found)
    answer = await context.search("charts", budget=2)
    need = Need(text="charts", filters=Filters(not_self=True))
    assert (answer, context.searches) == (
        found,
        [Search(needs=(need,), by=AgentId("agent-under-test"), purpose=context.task_id, budget=2)],
    )


def test_a_plain_function_waits_for_its_search(tmp_path: Path) -> None:
    """Outside an event loop the answer is waited for."""
    assert RecordingContext(tmp_path).search("charts").result().merged == ()
