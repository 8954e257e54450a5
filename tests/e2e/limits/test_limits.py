"""Every limit with real processes: the goal ends in the typed reason, what was said is kept, and what ran is really stopped."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ioa.client.client import Client
from ioa.group.events import Said, TimerFired
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId
from ioa.protocol.messages import Discussion, Phase
from tests.e2e.command_line import is_alive
from tests.e2e.goals.outcomes import replay_tree
from tests.e2e.limits.conftest import Drill
from tests.rig.deadline import eventually


async def _phase(system: Client, comm_id: CommId) -> Phase:
    return (await system.group(comm_id)).state.phase


pytestmark = pytest.mark.slow

_PATIENCE = timedelta(seconds=30)


async def _run(system: Client, goal: str, **options: object) -> tuple[GoalResult, int]:
    """Have the boss lead a goal; return the result and how many turns of talk its log holds, replayed by the machine."""
    goal_id = await _launch(system, goal, **options)
    async with asyncio.timeout(_PATIENCE.total_seconds()):
        result = await system.wait_for_result(goal_id)
    groups = await replay_tree(system, result.comm_id)
    talk = [event for event in groups[result.comm_id] if isinstance(event, Said) and isinstance(event.message.payload, Discussion)]
    return result, len(talk)


async def _launch(system: Client, goal: str, **options: object) -> GoalId:
    return await system.submit(GoalOrder.model_validate({"goal": goal, "agent": AgentId("boss"), "timeout": 60, **options}))


@pytest.mark.parametrize(
    ("goal", "options", "reason", "talk"),
    [
        ("concluded: there is nothing to do", {}, Reason.CONCLUDED, 0),
        ("failed: it does not work out", {}, Reason.FAILED, 0),
        ("no_agent: find a unicorn", {}, Reason.NO_AGENT, 0),
        ("max_turns: talk for ever", {"max_turns": 7}, Reason.MAX_TURNS, 7),
        ("repetition: say the same into silence", {}, Reason.CONCLUDED, 1),
        ("budget: talk for ever", {"max_tokens": 149}, Reason.BUDGET, 3),
        ("budget: talk for ever", {"max_tokens": 150}, Reason.BUDGET, 3),
        ("member_lost: say nothing", {}, Reason.MEMBER_LOST, 0),
        ("deadline: work for ever", {"timeout": 3}, Reason.DEADLINE, 0),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
async def test_each_limit_ends_in_its_reason(
    system: Client, goal: str, options: dict[str, object], reason: Reason, talk: int
) -> None:
    """The goal has its one result, exactly the turns that were allowed are in the log, and every entry is what the machine says."""
    result, said = await _run(system, goal, **options)
    assert (result.reason, said) == (reason, talk)


async def test_a_budget_is_set_and_shown_on_the_command_line(system: Client, drill: Drill) -> None:
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


async def test_a_task_past_its_own_deadline_is_stopped(system: Client, drill: Drill) -> None:
    """It reports progress all the while and fails all the same; its function is told to stop, and its late result is lost."""
    stopped = len(drill.record("crawler.stopped"))
    result, _ = await _run(system, "task_deadline: crawl for ever")
    await eventually(lambda: len(drill.record("crawler.stopped")) == stopped + 1)
    assert (result.reason, result.content) == (Reason.CONCLUDED, "failed: crawler was not done by the task's deadline")


async def test_task_with_progress_reports_outlasts_its_lease(system: Client, drill: Drill) -> None:
    """The function runs once because each report renews the lease."""
    goal_id = await _launch(system, "lease: work for three seconds")
    async with asyncio.timeout(_PATIENCE.total_seconds()):
        result = await system.wait_for_result(goal_id)
    [events] = (await replay_tree(system, result.comm_id)).values()
    suspected = [event for event in events if isinstance(event, TimerFired) and not event.heard]
    assert (result.content, drill.record("walker.started")[-1:], suspected) == ("done: walked in attempt 1", ["1"], [])


async def test_cancelled_goal_stops_functions_in_nested_teams(system: Client, drill: Drill) -> None:
    """The functions and the tool end, and all three groups are cancelled."""
    for name in ("walker", "crawler", "runner"):
        for moment in ("started", "stopped"):
            (drill.folder / f"{name}.{moment}").unlink(missing_ok=True)
    goal_id = await _launch(system, "nested: go deep", max_turns=40)
    started = ("walker.started", "crawler.started", "runner.started")
    await eventually(lambda: all(drill.record(name) for name in started), within=_PATIENCE)
    pid = int(drill.record("runner.started")[0])
    ran = is_alive(pid)

    cancelled = await asyncio.to_thread(drill.command.run, "goal", "cancel", goal_id, "--why", "Enough.", "--url", drill.url)

    await eventually(lambda: bool(drill.record("walker.stopped") and drill.record("crawler.stopped")), within=_PATIENCE)
    await eventually(lambda: not is_alive(pid), within=_PATIENCE)
    result = await system.result(goal_id)
    assert result is not None
    groups = await replay_tree(system, result.comm_id)
    phases = [await _phase(system, comm_id) for comm_id in groups]
    assert (cancelled.returncode, ran, result.reason, phases) == (0, True, Reason.CANCELLED, [Phase.CANCELLED] * 3)
    assert [len(drill.record(name)) for name in started] == [1, 1, 1]
