"""An agent that kills its own process, once, at the point that `DOOMED_AT` names, and writes down each run of its function.

Run as a file of its own: what is replaced here is replaced in this process alone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ioa import Agent
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.sqlite_store import SqliteStore
from ioa.agent.rules import RuleBrain
from ioa.agent.task_context import TaskContext
from ioa.protocol.messages import InformTaskResult, Message, SyncTaskAssignment

TRADE = "polish the brass gongs of the lighthouse"

_at = os.environ["DOOMED_AT"]
_folder = Path(os.environ["DOOMED_FOLDER"])

agent = Agent(f"doomed-{_at}", description="Polishes brass gongs.", examples=[f"{TRADE} {_at}"], may_team_up=False)


def die_once(at: str) -> None:
    """Be killed if this is the point, unless it has happened before."""
    mark = _folder / "died"
    if at == _at and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Write the attempt down."""
    with (_folder / "runs").open("a") as runs:
        runs.write(f"{ctx.attempt}\n")
    die_once("running")
    return f"polished in attempt {ctx.attempt}"


def _dying(kind: type, name: str, before: Callable[..., str], after: Callable[..., str]) -> None:
    """Let a method of a class be a point to die at, before and after its work."""
    method: Callable[..., Awaitable[Any]] = getattr(kind, name)

    async def deadly(*arguments: Any, **named: Any) -> Any:
        die_once(before(*arguments))
        answer = await method(*arguments, **named)
        die_once(after(*arguments))
        return answer

    setattr(kind, name, deadly)


def _said(moment: str) -> Callable[..., str]:
    def point(_network: object, message: Message) -> str:
        what = {SyncTaskAssignment: "assignment", InformTaskResult: "result"}.get(type(message.payload), "")
        return f"{moment}-{what}"

    return point


_dying(RuleBrain, "speak", lambda *_: "thinking", lambda *_: "")
_dying(RuleBrain, "conclude", lambda *_: "concluding", lambda *_: "")
_dying(NatsAgentNetwork, "launch", lambda *_: "", lambda *_: "launched")
_dying(NatsAgentNetwork, "say", _said("before"), _said("after"))
_dying(SqliteStore, "finish_task", lambda *_: "finished", lambda *_: "journalled")

if __name__ == "__main__":
    agent.run()
