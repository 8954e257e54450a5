"""Goals as runs of AG-UI, whose events are read by its own package."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from ag_ui.core import Event, ResumeEntry, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, GoalId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.rig.deadline import eventually

EVENT: TypeAdapter[Any] = TypeAdapter(Event)
ASKED = RunAgentInput(
    thread_id="thread 1",
    run_id="run 1",
    state={},
    messages=[UserMessage(id="m", role="user", content="Count.")],
    tools=[],
    context=[],
)


async def _run(http: httpx.AsyncClient, after: int | None = None, asked: RunAgentInput = ASKED) -> list[tuple[int | None, Any]]:
    """Run, and return each event with its id."""
    heads = {} if after is None else {"Last-Event-ID": str(after)}
    seen, place = list[tuple[int | None, Any]](), None
    body = asked.model_dump(mode="json", by_alias=True, exclude_none=True)
    async with http.stream("POST", "/agui/ada", json=body, headers=heads) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                place = int(value)
            elif name == "data":
                seen.append((place, EVENT.validate_json(value)))
                place = None
    return seen


async def _launched(http: httpx.AsyncClient, members: Members) -> CommId:
    """Wait for the goal of the run, and open its group."""
    path = "/goals?label=agui-thread%3Dthread%201"
    answer = await eventually(lambda: http.get(path), lambda answer: bool(answer.json()["goals"]))
    [goal] = answer.json()["goals"]
    return (await members.launch(GoalId(goal["goal_id"]))).state.comm_id


def _kinds(seen: list[tuple[int | None, Any]]) -> list[str]:
    return [event.type.value for _, event in seen]


async def test_a_run_is_a_goal(http: httpx.AsyncClient, plane: Plane, members: Members) -> None:
    """Each kind of event is one of AG-UI's; a torn run goes on behind what was seen, and is the same goal."""
    async with asyncio.TaskGroup() as group:
        run = group.create_task(_run(http))
        room = await _launched(http, members)
        await members.say(ADA, Discussion(content="You?", next_speaker=BOB), room)
        await members.say(BOB, Discussion(content="You.", next_speaker=ADA), room)
        task = TaskSpec(task_id=TaskId("t3-1"), assignee=BOB, task_desc="Count.")
        await members.say(ADA, SyncTaskAssignment(tasks=(task,)), room)
        await members.say(BOB, InformTaskResult(task_id=task.task_id, task_conclusion="Ten."), room)
        await members.conclude(ADA, "Ten.", room)
    seen = run.result()
    text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    kinds, step = _kinds(seen), ["STEP_FINISHED", "STEP_STARTED"]
    assert kinds[:6] == ["RUN_STARTED", "STATE_SNAPSHOT", "STEP_STARTED", *step, text[0]]
    assert (kinds.count("ACTIVITY_SNAPSHOT") > 1, kinds[-1]) == (True, "RUN_FINISHED")
    assert kinds.count("STEP_STARTED") == kinds.count("STEP_FINISHED")
    assert [event.delta for _, event in seen if event.type == "TEXT_MESSAGE_CONTENT"][:2] == ["You?", "You."]
    assert seen[-1][1].result["content"] == "Ten."
    places = [place for place, _ in seen if place is not None]
    assert places == sorted(set(places))
    torn = await _run(http, after=places[1])
    behind = next(number for number, (place, _) in enumerate(seen) if place == places[1]) + 2  # without the end of a step
    assert _kinds(torn) == [*kinds[:2], *kinds[behind:]]
    assert len((await http.get("/goals")).json()["goals"]) == 1


async def test_a_goal_that_fails_is_an_error_of_the_run(http: httpx.AsyncClient, members: Members) -> None:
    """With its reason as the code, however often the run is asked for."""
    async with asyncio.TaskGroup() as group:
        run = group.create_task(_run(http))
        room = await _launched(http, members)
        await members.say(ADA, ConcludeGroupDiscussion(), room)
        await members.say(ADA, Conclusion(content="Cannot.", reason=Reason.FAILED), room)
    ends = [seen[-1][1] for seen in (run.result(), await _run(http))]
    assert [(end.type.value, end.code, end.message) for end in ends] == [("RUN_ERROR", "failed", "Cannot.")] * 2


@pytest.mark.parametrize(
    ("entry", "answer"), [({"status": "resolved", "payload": {"answer": "yes"}}, "yes"), ({"status": "cancelled"}, "no")]
)
async def test_question_interrupts_a_run_and_the_next_run_answers_it(
    http: httpx.AsyncClient, members: Members, entry: dict[str, Any], answer: str
) -> None:
    """The goal goes on with the answer, or with the default if the user gives none."""
    until = datetime.now(UTC) + timedelta(minutes=30)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(_run(http))
        room = await _launched(http, members)
        await members.say(ADA, AskUser(text="From zero?", options=("yes", "no"), default="no", until=until), room)
    [interrupt] = run.result()[-1][1].outcome.interrupts
    assert (interrupt.response_schema["properties"]["answer"]["enum"], "From zero?" in interrupt.message) == (["yes", "no"], True)
    resumed = ASKED.model_copy(update={"run_id": "run 2", "resume": [ResumeEntry(interrupt_id=interrupt.id, **entry)]})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(_run(http, asked=resumed))
        await eventually(lambda: http.get("/questions"), lambda told: not told.json()["questions"])
        await members.conclude(ADA, "Eleven.", room)
    end = run.result()[-1][1]
    assert (end.type.value, end.result["content"]) == ("RUN_FINISHED", "Eleven.")
    [goal] = (await http.get("/goals")).json()["goals"]
    said = (await http.get(f"/goals/{goal['goal_id']}/entries")).json()["entries"]
    assert [one["body"]["answer"] for one in said if one["type"] == "question_answered"] == [answer]


async def test_resumed_run_contains_the_entries_since_the_interrupt(http: httpx.AsyncClient, members: Members) -> None:
    """A task ends between the question and its answer."""
    until, task = datetime.now(UTC) + timedelta(minutes=30), TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc="Count.")
    async with asyncio.TaskGroup() as group:
        run = group.create_task(_run(http))
        room = await _launched(http, members)
        await members.say(ADA, AsyncTaskAssignment(tasks=(task,)), room)
        await members.say(BOB, InformTaskProgress(task_id=task.task_id, number=1), room)
        await members.say(ADA, AskUser(text="From zero?", options=("yes", "no"), default="no", until=until), room)
    first, [interrupt] = run.result(), run.result()[-1][1].outcome.interrupts
    await members.say(BOB, InformTaskResult(task_id=task.task_id, task_conclusion="Nine."), room)
    entry = ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload={"answer": "yes"})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(_run(http, asked=ASKED.model_copy(update={"run_id": "run 2", "resume": [entry]})))
        await eventually(lambda: http.get("/questions"), lambda told: not told.json()["questions"])
        await members.conclude(ADA, "Eleven.", room)
    texts = [event.delta for _, event in run.result() if event.type == "TEXT_MESSAGE_CONTENT"]
    places = [place for place, _ in (*first, *run.result()) if place is not None]
    assert (texts[0], places) == ("Nine.", sorted(set(places)))


async def test_a_silent_run_shows_it_stands(http: httpx.AsyncClient, members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nobody says anything there is a comment now and then, so that nothing between takes the stream for dead."""
    monkeypatch.setattr("ioa_gateway.event_streams.SILENCE", timedelta(milliseconds=20))
    body = ASKED.model_dump(mode="json", by_alias=True, exclude_none=True)
    async with asyncio.timeout(5), http.stream("POST", "/agui/ada", json=body) as response:
        beats = (line async for line in response.aiter_lines() if line == ":")
        assert [await anext(beats) for _ in range(2)] == [":", ":"]
