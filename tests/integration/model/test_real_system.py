"""Goals that a real, small model drives through the whole system: poor answers, and every group ends by the rules."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.client.client import Client, open_system
from ioa.client.replay import replayed
from ioa.group.events import Said
from ioa.local.local_system import EmbeddedSystem, open_embedded_system
from ioa.local.pool import Pool, PooledAgent
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.messages import Message, Pass, PassCause
from tests.integration.model.goals import AGENTS, FRUGAL, GOALS

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(420)]

AT_ONCE = 4
GOAL_TIMEOUT_S = 60
MAX_TURNS = 2

_AGENT = """
from ioa import Agent

agent = Agent({agent_id!r}, description={description!r}, examples={examples!r})

@agent.task
def run(task: str) -> str:
    return "Done: " + task[:200]
"""


@pytest.fixture
async def system(llama_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedSystem]:
    """A whole system of processes whose agents talk by the model."""
    monkeypatch.setenv("IOA_LLM_BASE_URL", llama_url)
    monkeypatch.setenv("IOA_LLM_MODEL", "smollm2")
    for variable, value in FRUGAL.items():
        monkeypatch.setenv(variable, value)
    agents = []
    for number, (agent_id, description) in enumerate(AGENTS.items()):
        file = tmp_path / f"{agent_id.replace('-', '_')}.py"
        # Each agent serves a fifth of the goals, because the test is about conversations, not about discovery.
        text = _AGENT.format(agent_id=agent_id, description=description, examples=GOALS[number :: len(AGENTS)])
        file.write_text(text, encoding="utf-8")
        agents.append(PooledAgent(target=f"{file}:agent"))
    async with open_embedded_system(tmp_path / "data", None, Pool(agents=tuple(agents))) as running:
        yield running


_LEGAL_KIND = ("too_late", "group_ended", "repetition")
"""What a message is told that was on its way when its goal's time ran out, and one that says the same again, which no choice of
kinds can keep a small model from: it is refused, and the model decides anew.
"""


async def test_goals_end_and_every_log_follows_the_rules(system: EmbeddedSystem, tmp_path: Path) -> None:
    """Each goal has one typed result, each log replays through the machine, and the router refused no kind that a model chose.

    No other component decides for the model; a pass contains its reason.
    """
    asked = GOALS[::4]  # one for each agent; a small model thinks for minutes about all of them
    async with open_system(system.nats("test"), patience=timedelta(seconds=10)) as outside:
        side_by_side = asyncio.Semaphore(AT_ONCE)

        async def reach(goal: str) -> GoalResult:
            async with side_by_side:
                return await _reach(outside, goal)

        async with asyncio.TaskGroup() as tasks:
            reached = [tasks.create_task(reach(goal)) for goal in asked]
        results = [task.result() for task in reached]
        said: list[Message] = []
        for standing in (await outside.groups()).groups:
            entries = await outside.group_entries(standing.state.comm_id)
            assert len(list(replayed(entries))) == len(entries)
            said += [stored.entry.event.message for stored in entries if isinstance(stored.entry.event, Said)]
        assert all(standing.state.phase.is_terminal for standing in (await outside.groups()).groups)
    logs = _agents_logs(tmp_path / "data" / "logs")
    refused = [line for line in logs if line["event"] == "nothing_said" and line["code"] not in {"", *_LEGAL_KIND}]
    undecided = Counter(line["cause"] for line in logs if line["event"] == "model_did_not_decide")
    print(Counter(str(result.reason) for result in results), Counter(message.payload.type for message in said), undecided)
    assert (len(results), refused) == (len(asked), [])
    deciders = {message.header.decided_by.kind for message in said if message.header.decided_by is not None}
    assert deciders | {one.by.kind for result in results for one in result.decisions} <= {"model"}
    passes = [message.payload for message in said if isinstance(message.payload, Pass)]
    assert all(one.content for one in passes if one.cause is not PassCause.NOTHING_TO_ADD)


def _agents_logs(folder: Path) -> list[dict[str, object]]:
    lines = [line for file in folder.glob("agent*.log") for line in file.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


async def _reach(outside: Client, goal: str) -> GoalResult:
    goal_id = await outside.submit(GoalOrder(goal=goal, max_turns=MAX_TURNS, timeout=GOAL_TIMEOUT_S))
    return await outside.wait_for_result(goal_id)
