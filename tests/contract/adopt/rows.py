"""Adapters to protocols and programs around a `ForeignAgent`: the rows of the conformance table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ioa import adopt
from ioa.adopt import a2a
from ioa.hosting.agent import Agent
from tests.contract.adopt.servers import A2aServer, WebhookServer, serving

DOES = "Does its tasks"


@contextmanager
def _command(folder: Path) -> Iterator[Agent]:
    argv = [sys.executable, str(Path(__file__).with_name("worker.py")), str(folder)]
    yield adopt.command("worker", argv, description=DOES, sandbox=False)  # a sandbox would hide its notes


@contextmanager
def _webhook(folder: Path) -> Iterator[Agent]:
    with serving(WebhookServer(folder)) as url:
        yield adopt.webhook("hook", f"{url}/tasks", description=DOES)


@contextmanager
def _a2a(folder: Path) -> Iterator[Agent]:
    with serving(A2aServer(folder)) as url:
        yield a2a("remote", url, description=DOES)


def mcp_server(folder: Path) -> str:
    """Return the command of an MCP server."""
    return shlex.join([sys.executable, str(Path(__file__).with_name("mcp_worker.py")), str(folder)])


@contextmanager
def _mcp(folder: Path) -> Iterator[Agent]:
    yield adopt.mcp("tool", mcp_server(folder), tool="perform", description=DOES)


ROWS: dict[str, Callable[[Path], AbstractContextManager[Agent]]] = {
    "command": _command,
    "webhook": _webhook,
    "a2a": _a2a,
    "mcp": _mcp,
}

LACKS: dict[str, dict[str, str]] = {
    "a2a": {"budget": "the protocol does not tell what a task has used"},
    "mcp": {"budget": "the protocol does not tell what a call has used"},
}
"""What the other side of an adapter has no way to say, and why."""
