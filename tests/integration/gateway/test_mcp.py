"""MCP as its own library's client speaks it: goals are started, waited for, and survive who asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult

from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import GoalId
from ioa.protocol.messages import AskUser, ConcludeGroupDiscussion, Conclusion, Discussion
from ioa.protocol.operation.api_keys import Scope
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, ROOM, Members, order
from tests.integration.gateway.desk import QUESTION, open_desk
from tests.integration.gateway.serving import Door, key
from tests.integration.gateway.test_keys import bearer
from tests.rig.deadline import eventually

TOOLS = ["find_agents", "start_group", "wait", "ask_agent", "get_status", "post", "cancel"]


@asynccontextmanager
async def speaking(
    http: httpx.AsyncClient, headers: Mapping[str, str] | None = None, elicitation: ElicitationFnT | None = None
) -> AsyncIterator[Client]:
    """A client of the library, with the key of the test, these headers, and a function that asks the user."""
    url = str(http.base_url).removesuffix("/v1/") + "/mcp"
    sent = {"Authorization": http.headers["authorization"], **(headers or {})}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=20, verify=False) as by,
        Client(streamable_http_client(url, http_client=by), elicitation_callback=elicitation) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """Call a tool that has to succeed."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return dict(answer.structured_content)


async def test_rejected_goal_has_a_result_by_http_and_mcp(http: httpx.AsyncClient, plane: Plane) -> None:
    """Both report the reason, although no list contains the goal."""
    await plane.client.submit(GoalOrder(goal="Count.", goal_id=GOAL, team="nowhere"))
    result = await eventually(lambda: http.get(f"/goals/{GOAL}/result"), lambda answer: answer.status_code == 200)
    assert (result.json()["reason"], "No team is called nowhere" in result.json()["content"]) == ("failed", True)
    async with speaking(http) as client:
        answers = [await client.call_tool(tool, {"goal_id": GOAL}) for tool in ("wait", "get_status")]
    assert [(one.is_error, "was not accepted" in str(one.content)) for one in answers] == [(True, True)] * 2


async def test_a_goal_is_started_and_waited_for_with_its_files(http: httpx.AsyncClient, members: Members) -> None:
    """A client starts a goal at once, hears what agents say as often as it asks, and reads the files of the result."""
    async with speaking(http) as client:
        files = [{"name": "a.csv", "text": "x\n1\n"}]
        goal_id = (await called(client, "start_group", goal="Count.", agent="ada", files=files))["goal_id"]
        room = (await members.launch(GoalId(goal_id))).state.comm_id
        await members.say(ADA, Discussion(content="One?", next_speaker=BOB), room)
        first = await called(client, "wait", goal_id=goal_id, seconds=0)
        stored = [(await http.put(f"/uploads/{name}", content=b"10")).json() for name in ("ten.txt", "ten.png")]
        await members.say(BOB, Discussion(content="Two!", next_speaker=ADA), room)
        await members.say(ADA, ConcludeGroupDiscussion(), room)
        await members.say(ADA, Conclusion.model_validate({"content": "Ten.", "artifacts": stored}), room)
        last = await called(client, "wait", goal_id=goal_id, seconds=10, after=first["after"])
        assert (first["state"], first["result"], "One?" in "".join(first["lines"])) == ("discussing", None, True)
        lines = "".join(last["lines"])
        assert ("One?" in lines, "Two!" in lines, last["result"]["answer"]) == (False, True, "Ten.")
        read = [(await client.read_resource(file["uri"])).contents[0] for file in last["result"]["files"]]
        assert [(one.mime_type, getattr(one, "text", None)) for one in read] == [("text/plain", "10"), ("image/png", None)]
        assert (await called(client, "get_status", goal_id=goal_id))["result"] == last["result"]
        with pytest.raises(MCPError):
            await client.read_resource(f"ioa://goal/{goal_id}/2/ten.txt")


async def test_goal_has_the_trace_of_the_request_that_launches_it(http: httpx.AsyncClient, plane: Plane) -> None:
    """The header `traceparent` counts for `POST /v1/goals` and for the tools of MCP; a trace in the body takes precedence."""
    headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    bodies = [{"goal": "Count."}, {"goal": "Sum.", "traceparent": f"00-{'c' * 32}-{'d' * 16}-01"}]
    goals = [(await http.post("/goals", json=body, headers=headers)).json()["goal_id"] for body in bodies]
    async with speaking(http, headers) as client:
        goals.append((await called(client, "start_group", goal="Draw."))["goal_id"])

    traces = [(await plane.client.goal(goal_id)).record.goal.traceparent[3:35] for goal_id in goals]
    assert traces == ["a" * 32, "c" * 32, "a" * 32]


async def test_repeated_task_joins_the_open_goal_and_is_a_new_one_after_its_end(http: httpx.AsyncClient, members: Members) -> None:
    """A client that cancelled a call gets the answer by the same call; a later question is answered again."""
    asked, seen = {"agent": "ada", "task": "Count."}, asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.set()

    async with speaking(http) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.call_tool("ask_agent", asked)
        [row] = (await http.get("/goals")).json()["goals"]
        room = (await members.launch(GoalId(row["goal_id"]))).state.comm_id
        async with asyncio.TaskGroup() as side:
            again = side.create_task(client.call_tool("ask_agent", asked, progress_callback=report))
            await members.say(ADA, Discussion(content="Look.", next_speaker=BOB), room)
            await seen.wait()
            await members.say(BOB, Discussion(content="Well.", next_speaker=ADA), room)
            await members.conclude(ADA, "Ten.", room)
        later = [await called(client, "ask_agent", **asked, seconds=0) for _ in range(2)]
        keyed = [(await called(client, "start_group", goal="Sum.", key="k"))["goal_id"] for _ in range(2)]
    answered = again.result().structured_content or {}
    assert (answered["goal_id"], answered["result"]["answer"]) == (row["goal_id"], "Ten.")
    assert len({row["goal_id"], *(one["goal_id"] for one in later)}) == 2
    assert keyed[0] == keyed[1]


async def test_messages_are_progress_and_questions_are_elicited(plane: Plane, http: httpx.AsyncClient, members: Members) -> None:
    """A client that can ask its user answers a question within the call, and gets the conclusion by the same call."""
    await plane.client.submit(order())
    await members.launch()
    seen, questions = list[str | None](), list[str]()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"answer": "yes"})

    async with speaking(http, elicitation=ask) as client, asyncio.TaskGroup() as side:
        waiting = side.create_task(client.call_tool("wait", {"goal_id": GOAL, "seconds": 30}, progress_callback=report))
        await members.say(ADA, Discussion(content="Look.", next_speaker=BOB))
        await members.say(BOB, Discussion(content="Well.", next_speaker=ADA))
        until = datetime.now(UTC) + timedelta(minutes=30)
        await members.say(ADA, AskUser(text="One?", options=("yes", "no"), default="no", until=until))
        await eventually(lambda: http.get("/questions"), lambda told: not told.json()["questions"])
        await members.conclude(ADA, "Ten.")
    told = waiting.result().structured_content or {}
    assert (told["result"]["answer"], len(questions), "One?" in questions[0]) == ("Ten.", 1, True)
    assert "ada: Look." in seen


_WRONG_CALLS: list[tuple[str, dict[str, object], str]] = [
    ("wait", {"goal_id": "none"}, "There is no goal none."),
    ("wait", {"goal_id": "a b"}, ""),
    ("wait", {"goal_id": "none", "seconds": 51}, "seconds"),
    ("wait", {"goal_id": "none", "after": 10**30}, "after"),
    ("start_group", {"goal": " "}, "goal"),
    ("start_group", {"goal": "x", "files": [{"name": "../x", "text": ""}]}, "../x"),
    ("start_group", {"goal": "x", "agent": "a b"}, "agent"),
]


async def test_tools_are_constant_and_report_wrong_arguments(http: httpx.AsyncClient, members: Members) -> None:
    """A client loads a few tools once, with the schema of what they answer; what cannot be is an error that a model reads."""
    async with speaking(http) as client:
        tools = (await client.list_tools()).tools
        found = await called(client, "find_agents", need="counts")
        for tool, arguments, words in _WRONG_CALLS:
            refused = await client.call_tool(tool, arguments)
            assert (refused.is_error, words in str(refused.content)) == (True, True), arguments
        goal_id = (await called(client, "start_group", goal="Count.", agent="ada"))["goal_id"]
        await members.launch(GoalId(goal_id))
        cancelled = await called(client, "cancel", goal_id=goal_id, why="no need")
    assert ([tool.name for tool in tools], all(tool.output_schema for tool in tools)) == (TOOLS, True)
    assert {one["agent"] for one in found["agents"]} == {"ada", "bob"}
    assert cancelled["result"]["reason"] == "cancelled"


async def test_a_long_talk_is_told_whole(http: httpx.AsyncClient, members: Members) -> None:
    """Who waits with each `after` that it is told, as long as `next` says so, hears every line once and in order."""
    async with speaking(http) as client:
        goal_id = (await called(client, "start_group", goal="Count.", agent="ada", max_turns=200))["goal_id"]
        room = (await members.launch(GoalId(goal_id))).state.comm_id
        for number in range(35):
            await members.say(ADA, Discussion(content=f"[{2 * number}]", next_speaker=BOB), room)
            await members.say(BOB, Discussion(content=f"[{2 * number + 1}]", next_speaker=ADA), room)
        await members.conclude(ADA, "[70]", room)
        pages = [await called(client, "wait", goal_id=goal_id)]
        while pages[-1]["next"]:
            pages.append(await called(client, "wait", goal_id=goal_id, after=pages[-1]["after"]))
    said = re.findall(r"\[(\d+)\]", "".join(line for page in pages for line in page["lines"]))
    assert ([int(one) for one in said], len(pages)) == (list(range(71)), 2)
    assert [page["result"]["answer"] for page in pages] == ["[70]"] * len(pages)


async def test_a_person_answers_through_its_assistant(plane: Plane, http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """`wait` returns as soon as something is up to the caller's people, and `post` answers it once; others are told of nothing."""
    room = await open_desk(plane, members)
    await door.keys.put(key("eve", Scope.GOALS_READ, "seats:eve"))
    async with speaking(http) as client:
        told = await called(client, "wait", goal_id=GOAL, seconds=30)
        [asks] = told["asks"]
        assert (asks["seat"], asks["options"], sorted(asks["fields"])) == ("anna", ["ask"], ["agrees", "amount"])
        assert QUESTION in told["lines"][-1] and "Ask your user" in told["next"]
        posted = {
            "goal_id": GOAL,
            "seat": "anna",
            "item": asks["item"],
            "text": "Yes.",
            "choose": "ask",
            "fields": {"agrees": "yes"},
        }
        for _ in range(2):
            assert (await called(client, "post", **posted))["asks"] == []
        wrong = await client.call_tool("post", {**posted, "text": "No."})
        assert (wrong.is_error, "is over" in str(wrong.content)) == (True, True)
    async with asyncio.TaskGroup() as side, speaking(http) as client:
        waiting = side.create_task(called(client, "wait", goal_id=GOAL, seconds=30))
        await members.say(ADA, Discussion(content="And two?"), room)
        assert [one["seat"] for one in (await waiting)["asks"]] == ["anna"]
    http.headers["authorization"] = bearer("eve")["Authorization"]
    async with speaking(http) as client:
        assert (await called(client, "wait", goal_id=GOAL, seconds=0))["asks"] == []
        assert (await client.call_tool("post", posted)).is_error


async def test_question_to_the_user_is_answered_by_http_and_mcp(
    plane: Plane, http: httpx.AsyncClient, door: Door, members: Members
) -> None:
    """Each question is listed and answered once; a key that only reads answers none."""
    await plane.client.submit(order())
    await members.launch()
    path = f"/groups/{ROOM}/answer"

    async def ask(text: str) -> int:
        until = datetime.now(UTC) + timedelta(minutes=30)
        await members.say(ADA, AskUser(text=text, options=("yes", "no"), default="no", until=until))
        [waits] = (await http.get("/questions")).json()["questions"]
        assert (waits["text"], waits["kind"], waits["default"]) == (text, "question", "no")
        return int(waits["item"].split(".")[-1])

    turn = await ask("One?")
    told = [await http.post(path, json={"turn": turn, "answer": answer}) for answer in ("perhaps", "yes", "yes", "no")]
    assert [one.status_code for one in told] == [422, 200, 200, 409]
    assert [(await http.post(path, json={**one, "answer": "yes"})).status_code for one in ({}, {"task_id": "t1"})] == [422, 422]
    async with speaking(http) as client:
        await ask("Two?")
        [asks] = (await called(client, "wait", goal_id=GOAL, seconds=30))["asks"]
        assert (asks["seat"], asks["options"]) == (None, ["yes", "no"])
        assert (await called(client, "post", goal_id=GOAL, item=asks["item"], choose="yes"))["asks"] == []
        assert (await client.call_tool("post", {"goal_id": GOAL, "item": "other.2", "text": "yes"})).is_error
        item = f"{ROOM}.{await ask('Three?')}"
    await door.keys.put(key("reader", Scope.GOALS_READ))
    async with speaking(http, bearer("reader")) as client:
        accepted: Any = {item: ElicitResult(action="accept", content={"answer": "yes"})}
        refused = await client.call_tool("wait", {"goal_id": GOAL, "seconds": 0}, input_responses=accepted)
        assert (refused.is_error, "goals:write" in str(refused.content)) == (True, True)
    said = (await http.get(f"/goals/{GOAL}/entries")).json()["entries"]
    assert [one["body"]["answer"] for one in said if one["type"] == "question_answered"] == ["yes"] * 2
