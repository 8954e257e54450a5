"""An agent with tools that answers from a census."""

from __future__ import annotations

from ioa import Agent
from ioa.react import ReactAgent, ReactTool, tool

CENSUS = {"Tarn": 431, "Orle": 1_200}


@tool
def population(city: str) -> int:
    """How many people live in a city, by the last census.

    Args:
        city: Its name.
    """
    return CENSUS[city]


def census_agent(*tools: ReactTool, **options: object) -> Agent:
    """Return the agent, by default with the tool `population`."""
    return ReactAgent("census", description="Answers from the census", tools=tools or [population], **options)  # type: ignore[arg-type]
