"""Values that adapters hand to a framework: the conversation of a task, and the variables of a crew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace as Some
from typing import Any

import pytest

from ioa import InvalidInputError
from ioa.adopt import crewai, langgraph
from ioa.testing import RecordingContext
from ioa_testkit.system import System

_ASKED = "say hello to Ada"


class _Remembering:
    """A graph with a checkpointer, which remembers each thread."""

    def __init__(self) -> None:
        self._threads: dict[str, list[str]] = {}

    async def astream(self, state: Any, config: Any, stream_mode: list[str]) -> AsyncIterator[tuple[str, Any]]:
        """Return all messages of the thread."""
        heard = self._threads.setdefault(config["configurable"]["thread_id"], [])
        heard.append(state["messages"][0][1])
        yield "values", {"messages": [Some(text=f"heard: {' | '.join(heard)}", usage_metadata=None)]}


async def test_goals_have_separate_conversations(ioa_system: System) -> None:
    """The first task of each goal has the same id."""
    agent = langgraph("greeter", _Remembering(), description="Greets people by name", examples=[_ASKED])
    answers = [(await ioa_system.run(f"{_ASKED}{more}", agents=[agent])).content for more in (", who is 47", " and Bob")]
    assert ["47" in one for one in answers] == [True, False]


class _Crew:
    """A crew with variables."""

    usage_metrics = None

    def __init__(self, *variables: str) -> None:
        self._variables = set(variables)
        self.given: dict[str, Any] = {}

    def fetch_inputs(self) -> set[str]:
        """Return the names of the variables."""
        return self._variables

    def copy(self) -> _Crew:
        """Return the crew itself, so that a test sees the values."""
        return self

    async def akickoff(self, inputs: dict[str, Any]) -> Any:
        """Answer without work."""
        self.given = inputs
        return Some(raw="done")


async def test_variables_of_a_crew_are_given_by_inputs(tmp_path: Path) -> None:
    """Without `inputs`, several variables are an error that names them."""
    crew = _Crew("question", "place")
    with pytest.raises(InvalidInputError, match=r"has the variables place, question\. Return their values: crewai\(…, inputs="):
        crewai("crew", crew, description="Advises")
    agent = crewai("crew", crew, description="Advises", inputs=lambda task: {"question": task, "place": "Tarn"})
    answer = agent.function("why?", RecordingContext(tmp_path))
    assert not isinstance(answer, str) and await answer == "done"
    assert (crew.given["question"], crew.given["place"]) == ("why?", "Tarn")
