"""Each adapter around something that does what its task says: the rows of the table of conformance."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ioa import adopt
from ioa.hosting.agent import Agent
from tests.unit.adopt.servers import WebhookServer, serving

DOES = "Does what it is told"


@contextmanager
def _command(folder: Path) -> Iterator[Agent]:
    argv = [sys.executable, str(Path(__file__).with_name("worker.py")), str(folder)]
    yield adopt.command("worker", argv, description=DOES, sandbox=False)  # which could not write down what happens


@contextmanager
def _webhook(folder: Path) -> Iterator[Agent]:
    with serving(WebhookServer(folder)) as url:
        yield adopt.webhook("hook", f"{url}/tasks", description=DOES)


ROWS: dict[str, Callable[[Path], AbstractContextManager[Agent]]] = {"command": _command, "webhook": _webhook}

LACKS: dict[str, dict[str, str]] = {}
"""What the other side of an adapter has no way to say, and why."""
