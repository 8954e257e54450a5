"""Goals asked for as chats with a model, by OpenAI's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest
from openai import APIError, AsyncOpenAI, AuthenticationError, NotFoundError, UnprocessableEntityError

from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.messages import AskUser, ConcludeGroupDiscussion, Conclusion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import SECRET
from tests.rig.deadline import eventually

ASKED: Any = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "What is it?"},
    {"role": "user", "content": [{"type": "text", "text": "Count to ten."}]},
]


@asynccontextmanager
async def chatting(http: httpx.AsyncClient) -> AsyncIterator[AsyncOpenAI]:
    """A client that has never heard of agents."""
    async with AsyncOpenAI(api_key=f"ioa_web_{SECRET}", base_url=str(http.base_url), max_retries=1) as client:
        yield client


async def _opened(http: httpx.AsyncClient, members: Members) -> tuple[str, CommId]:
    """Have Ada take up the one goal that there is."""
    [row] = await eventually(lambda: _rows(http), lambda rows: len(rows) == 1)
    return row["goal_id"], (await members.launch(GoalId(row["goal_id"]))).state.comm_id


async def _rows(http: httpx.AsyncClient) -> list[Mapping[str, Any]]:
    return list((await http.get("/goals")).json()["goals"])


async def test_unknown_model_is_not_found_and_creates_no_goal(http: httpx.AsyncClient, members: Members) -> None:
    """A name that no agent and no pool ever registered is rejected before a goal is stored."""
    async with chatting(http) as client:
        with pytest.raises(NotFoundError, match="No agent or pool 'gpt-4o' has ever registered"):
            await client.chat.completions.create(model="gpt-4o", messages=ASKED)
    launched = await http.post("/goals", json={"goal": "Count.", "agent": "gpt-4o"})
    assert (launched.status_code, await _rows(http)) == (404, [])


async def test_a_conversation_is_a_task_of_the_named_agent(http: httpx.AsyncClient, plane: Plane, members: Members) -> None:
    """The last question is the goal and the conclusion the answer; the same conversation joins it while it is open."""
    async with chatting(http) as client:
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(client.chat.completions.create(model="ada", messages=ASKED))
            goal_id, room = await _opened(http, members)
            stream = await client.chat.completions.create(model="ada", messages=ASKED, stream=True)
            chunks = group.create_task(_chunks(stream))
            await members.conclude(ADA, "Ten.", room)
        names = [model.id async for model in client.models.list()]
    told = answer.result()
    assert (told.id, told.choices[0].message.content, told.choices[0].finish_reason) == (f"chatcmpl-{goal_id}", "Ten.", "stop")
    assert "".join(choice.delta.content or "" for chunk in chunks.result() for choice in chunk.choices) == "Ten."
    assert ({chunk.id for chunk in chunks.result()}, names, told.usage is not None) == ({told.id}, ["ioa", "ada", "bob"], True)
    goal = (await plane.client.goal(GoalId(goal_id))).record.goal
    assert (goal.goal, goal.agent, goal.as_task, [one.name for one in goal.inputs]) == (
        "Count to ten.",
        ADA,
        True,
        ["conversation.txt"],
    )
    read = await plane.client.fetch(goal.inputs[0])
    assert read == b"system: Be short.\n\nuser: Hello.\n\nassistant: What is it?"


async def _chunks(stream: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


async def test_same_words_after_the_end_are_a_new_goal(http: httpx.AsyncClient, members: Members) -> None:
    """A question that is asked again is answered again, in prose if the response format is text."""
    async with chatting(http) as client:
        for number in (1, 2):
            async with asyncio.TaskGroup() as group:
                prose = client.chat.completions.create(model="ioa", messages=ASKED, response_format={"type": "text"})
                answer = group.create_task(prose)
                rows = await eventually(partial(_rows, http), partial(_has, number))
                room = (await members.launch(GoalId(rows[0]["goal_id"]))).state.comm_id
                await members.conclude(ADA, f"{number}.", room)
            assert answer.result().choices[0].message.content == f"{number}."


def _has(number: int, rows: list[Mapping[str, Any]]) -> bool:
    return len(rows) == number


async def test_question_of_a_goal_is_the_answer_and_the_next_message_answers_it(http: httpx.AsyncClient, members: Members) -> None:
    """The goal goes on with the user's answer, and ends with its conclusion; a wrong option is rejected."""
    until = datetime.now(UTC) + timedelta(minutes=30)
    async with chatting(http) as client:
        async with asyncio.TaskGroup() as group:
            question = group.create_task(client.chat.completions.create(model="ada", messages=ASKED))
            goal_id, room = await _opened(http, members)
            await members.say(ADA, AskUser(text="From zero?", options=("yes", "no"), default="no", until=until), room)
        asked = question.result().choices[0].message.content
        assert asked is not None
        assert "From zero?" in asked
        assert "yes, no" in asked
        wrong, right = (
            [*ASKED, {"role": "assistant", "content": asked}, {"role": "user", "content": one}] for one in ("perhaps", "yes")
        )
        with pytest.raises(UnprocessableEntityError):
            await client.chat.completions.create(model="ada", messages=wrong)
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(client.chat.completions.create(model="ada", messages=right))
            await eventually(lambda: http.get("/questions"), lambda answer: not answer.json()["questions"])
            await members.conclude(ADA, "Eleven.", room)
    assert (answer.result().id, answer.result().choices[0].message.content) == (f"chatcmpl-{goal_id}", "Eleven.")
    assert len(await _rows(http)) == 1


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("response_format", {"type": "json_object"}),
        ("response_format", {"type": "json_schema"}),
        ("tool_choice", "required"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("stop", ["."]),
        ("n", 2),
        ("max_tokens", 10),
        ("max_completion_tokens", 10),
        ("logprobs", True),
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("modalities", ["text", "audio"]),
    ],
)
async def test_unsupported_parameter_is_rejected_by_name(http: httpx.AsyncClient, parameter: str, value: object) -> None:
    """An answer that ignores what the client asked for is worse than an error."""
    refused = await http.post("/chat/completions", json={"model": "ioa", "messages": ASKED, parameter: value})
    assert (refused.status_code, parameter in refused.json()["error"]["message"]) == (422, True)


async def test_a_goal_that_fails_is_an_error_that_is_not_tried_again(http: httpx.AsyncClient, members: Members) -> None:
    """The client gets the reason, also by a stream, and does not retry."""
    asked: Any = [{"role": "user", "content": "Count."}]
    async with chatting(http) as client:
        with pytest.raises(UnprocessableEntityError, match="Cannot") as refused:
            async with asyncio.TaskGroup() as group:
                answer = group.create_task(_error_of(client, asked))
                _, room = await _opened(http, members)
                chunks = await client.chat.completions.create(model="ioa", messages=asked, stream=True)
                stream = group.create_task(_stream_error(chunks))
                await members.say(ADA, ConcludeGroupDiscussion(), room)
                await members.say(ADA, Conclusion(content="Cannot.", reason=Reason.FAILED), room)
            raise answer.result()
    assert (refused.value.code, "Cannot" in stream.result(), len(await _rows(http))) == ("failed", True, 1)


async def _stream_error(chunks: AsyncIterator[Any]) -> str:
    try:
        await _chunks(chunks)
    except APIError as error:
        return str(error)
    raise AssertionError("it was answered")


async def _error_of(client: AsyncOpenAI, asked: Any) -> Exception:
    try:
        await client.chat.completions.create(model="ioa", messages=asked)
    except UnprocessableEntityError as error:
        return error
    raise AssertionError("it was answered")


async def test_chat_that_is_no_goal_is_rejected(http: httpx.AsyncClient) -> None:
    """Without a message of the user, and with a model that is no name of a pool."""
    wrong: list[dict[str, Any]] = [
        {"model": "ioa", "messages": [{"role": "system", "content": "x"}]},
        {"model": "a b", "messages": ASKED},
    ]
    assert [(await http.post("/chat/completions", json=one)).status_code for one in wrong] == [422, 404]


async def test_what_went_wrong_is_read_by_clients(http: httpx.AsyncClient) -> None:
    """OpenAI's client shows the words of an error, and what to do, of a wrong key as of a wrong request."""
    async with AsyncOpenAI(api_key="ioa_nobody_wrong", base_url=str(http.base_url)) as client:
        with pytest.raises(AuthenticationError, match="key is unknown"):
            await client.models.list()
    async with chatting(http) as client:
        picture: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]
        with pytest.raises(UnprocessableEntityError, match="POST /v1/goals takes files"):
            await client.chat.completions.create(model="ada", messages=picture)
