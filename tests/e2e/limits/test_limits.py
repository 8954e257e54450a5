"""Every limit with real processes: the goal ends in the typed reason, what was said is kept, and what ran is really stopped."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.group.events import Said
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, GoalId
from ioa.protocol.messages import Discussion
from tests.e2e.goals.outcomes import replay_tree
from tests.e2e.limits.conftest import Drill
from tests.rig.deadline import eventually

pytestmark = pytest.mark.slow

_PATIENCE = timedelta(seconds=30)


async def _run(system: NatsSystemClient, goal: str, **options: object) -> tuple[GoalResult, int]:
    """Have the boss lead a goal; return the result and how many turns of talk its log holds, replayed by the machine."""
    goal_id = await _launch(system, goal, **options)
    async with asyncio.timeout(_PATIENCE.total_seconds()):
        result = await system.wait_for_result(goal_id)
    groups = await replay_tree(system, result.comm_id)
    talk = [event for event in groups[result.comm_id] if isinstance(event, Said) and isinstance(event.message.payload, Discussion)]
    return result, len(talk)


async def _launch(system: NatsSystemClient, goal: str, **options: object) -> GoalId:
    return await system.launch(GoalOrder.model_validate({"goal": goal, "agent": AgentId("boss"), "timeout": 60, **options}))


@pytest.mark.parametrize(
    ("goal", "options", "reason", "talk"),
    [
        ("concluded: there is nothing to do", {}, Reason.CONCLUDED, 0),
        ("failed: it does not work out", {}, Reason.FAILED, 0),
        ("no_agent: find a unicorn", {}, Reason.NO_AGENT, 0),
        ("max_turns: talk for ever", {"max_turns": 7}, Reason.MAX_TURNS, 7),
        ("repetition: say the same into silence", {}, Reason.CONCLUDED, 1),
        ("budget: talk for ever", {"max_tokens": 149}, Reason.BUDGET, 2),
        ("budget: talk for ever", {"max_tokens": 150}, Reason.BUDGET, 3),
        ("member_lost: say nothing", {}, Reason.MEMBER_LOST, 0),
        ("deadline: work for ever", {"timeout": 3}, Reason.DEADLINE, 0),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
async def test_each_limit_ends_in_its_reason(
    system: NatsSystemClient, goal: str, options: dict[str, object], reason: Reason, talk: int
) -> None:
    """The goal has its one result, exactly the turns that were allowed are in the log, and every entry is what the machine says."""
    result, said = await _run(system, goal, **options)
    assert (result.reason, said) == (reason, talk)


async def test_a_budget_is_set_and_shown_on_the_command_line(system: NatsSystemClient, drill: Drill) -> None:
    """`ioa run --max-tokens --max-cost` binds the goal, and `ioa goal show` tells what was used of it."""
    lines = await asyncio.to_thread(
        drill.command.lines,
        "run",
        "budget: talk",
        "--agent",
        "boss",
        "--max-tokens",
        "100",
        "--max-cost",
        "0.5",
        "--url",
        drill.url,
    )
    result = lines[-1]
    shown = await asyncio.to_thread(drill.command.run, "goal", "show", result["goal_id"], "--url", drill.url)
    assert (result["reason"], result["usage"]["tokens_in"]) == ("budget", 80)
    assert all(words in shown.stdout for words in ("100 of 100", "0 of 0.5", "2 of 40")), shown.stdout


async def test_a_task_past_its_own_deadline_is_stopped(system: NatsSystemClient, drill: Drill) -> None:
    """It reports progress all the while and fails all the same; its function is told to stop, and its late result is lost."""
    stopped = len(drill.record("crawler.stopped"))
    result, _ = await _run(system, "task_deadline: crawl for ever")
    await eventually(lambda: len(drill.record("crawler.stopped")) == stopped + 1)
    assert (result.reason, result.content) == (Reason.CONCLUDED, "failed: crawler was not done by the task's deadline")
