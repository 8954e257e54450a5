"""Agents of other systems as `ioa.Agent`, by one expression each.

agent = adopt.langgraph("italian", graph, description="Translates texts into Italian", examples=["say good morning in Italian"])

Each function accepts the fields of a card, and imports no framework. `ioa.testing.conformance` tests the promises of an adapter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioa.lazy_names import lazy_names

if TYPE_CHECKING:
    from ioa.adopt.commands import command
    from ioa.adopt.frameworks import (
        adk,
        agent_framework,
        agno,
        autogen,
        crewai,
        langgraph,
        llama_index,
        openai_agents,
        pydantic_ai,
        smolagents,
    )
    from ioa.adopt.mcp_tools import mcp
    from ioa.adopt.remote_agents import a2a
    from ioa.adopt.webhook_agents import webhook

__all__ = [
    "a2a",
    "adk",
    "agent_framework",
    "agno",
    "autogen",
    "command",
    "crewai",
    "langgraph",
    "llama_index",
    "mcp",
    "openai_agents",
    "pydantic_ai",
    "smolagents",
    "webhook",
]

_OTHERS = {
    "a2a": "ioa.adopt.remote_agents",
    "command": "ioa.adopt.commands",
    "mcp": "ioa.adopt.mcp_tools",
    "webhook": "ioa.adopt.webhook_agents",
}
_HOMES = {**dict.fromkeys(__all__, "ioa.adopt.frameworks"), **_OTHERS}
"""The module of each name."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
