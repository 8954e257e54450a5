"""What an adopted agent keeps of a conversation is one task's, and no other goal is shown it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace as Some
from typing import Any

from ioa.adopt import langgraph
from ioa_testkit.system import System

_ASKED = "say hello to Ada"


class _Remembering:
    """A graph with a checkpointer: of each thread it knows what was said before."""

    def __init__(self) -> None:
        self._threads: dict[str, list[str]] = {}

    async def astream(self, state: Any, config: Any, stream_mode: list[str]) -> AsyncIterator[tuple[str, Any]]:
        """Answer with all that was said."""
        heard = self._threads.setdefault(config["configurable"]["thread_id"], [])
        heard.append(state["messages"][0][1])
        yield "values", {"messages": [Some(text=f"heard: {' | '.join(heard)}", usage_metadata=None)]}


async def test_a_goal_is_not_shown_what_another_had_said(ioa_system: System) -> None:
    """Though the first task of each has the same id."""
    agent = langgraph("greeter", _Remembering(), description="Greets people by name", examples=[_ASKED])
    answers = [(await ioa_system.run(f"{_ASKED}{more}", agents=[agent])).content for more in (", who is 47", " and Bob")]
    assert ["47" in one for one in answers] == [True, False]
