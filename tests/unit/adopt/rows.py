"""Each adapter around something that does what its task says: the rows of the table of conformance."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ioa import adopt
from ioa.adopt import a2a
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import ForeignAgent
from tests.unit.adopt import fakes
from tests.unit.adopt.servers import A2aServer, WebhookServer, serving

DOES = "Does what it is told"


@contextmanager
def _command(folder: Path) -> Iterator[Agent]:
    argv = [sys.executable, str(Path(__file__).with_name("worker.py")), str(folder)]
    yield adopt.command("worker", argv, description=DOES, sandbox=False)  # which could not write down what happens


@contextmanager
def _webhook(folder: Path) -> Iterator[Agent]:
    with serving(WebhookServer(folder)) as url:
        yield adopt.webhook("hook", f"{url}/tasks", description=DOES)


@contextmanager
def _a2a(version: str, folder: Path) -> Iterator[Agent]:
    with serving(A2aServer(folder, version)) as url:
        yield a2a("remote", url, description=DOES)


def mcp_server(folder: Path) -> str:
    """Return the command of an MCP server."""
    return shlex.join([sys.executable, str(Path(__file__).with_name("mcp_worker.py")), str(folder)])


@contextmanager
def _mcp(folder: Path) -> Iterator[Agent]:
    yield adopt.mcp("tool", mcp_server(folder), tool="perform", description=DOES)


@contextmanager
def _framework(adopted: Callable[..., Agent], fake: Callable[[ForeignAgent], tuple[Any, ...]], folder: Path) -> Iterator[Agent]:
    yield adopted("framework", *fake(ForeignAgent(folder)), description=DOES)


_FRAMEWORKS: dict[str, tuple[Callable[..., Agent], Callable[[ForeignAgent], tuple[Any, ...]]]] = {
    "langgraph": (adopt.langgraph, lambda foreign: (fakes.LangGraph(foreign),)),
    "pydantic_ai": (adopt.pydantic_ai, lambda foreign: (fakes.PydanticAi(foreign),)),
    "smolagents": (adopt.smolagents, lambda foreign: (lambda ctx: fakes.SmolAgent(foreign, ctx),)),
    "autogen": (adopt.autogen, lambda foreign: (lambda ctx: fakes.AutoGen(foreign, ctx),)),
    "agent_framework": (adopt.agent_framework, lambda foreign: (fakes.AgentFramework(foreign),)),
    "openai_agents": (adopt.openai_agents, lambda foreign: (foreign, fakes.OpenAiRunner)),
    "adk": (adopt.adk, lambda foreign: (fakes.AdkRunner(foreign), lambda text: SimpleNamespace(text=text))),
    "agno": (adopt.agno, lambda foreign: (fakes.Agno(foreign),)),
    "crewai": (adopt.crewai, lambda foreign: (lambda ctx: fakes.Crew(foreign, ctx),)),
    "llama_index": (adopt.llama_index, lambda foreign: (lambda ctx: fakes.LlamaIndex(foreign, ctx),)),
}

ROWS: dict[str, Callable[[Path], AbstractContextManager[Agent]]] = {
    "command": _command,
    "webhook": _webhook,
    "a2a-1.0": partial(_a2a, "1.0"),
    "a2a-0.3": partial(_a2a, "0.3"),
    "mcp": _mcp,
    **{name: partial(_framework, adopted, fake) for name, (adopted, fake) in _FRAMEWORKS.items()},
}

LACKS: dict[str, dict[str, str]] = {
    "a2a-1.0": {"budget": "the protocol does not tell what a task has used"},
    "a2a-0.3": {"budget": "the protocol does not tell what a task has used"},
    "mcp": {"budget": "the protocol does not tell what a call has used"},
}
"""What the other side of an adapter has no way to say, and why."""
