"""Goals asked for as chats with a model, by OpenAI's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI, AuthenticationError, NotFoundError, UnprocessableEntityError

from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import SECRET, Door
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
    rows: list[Mapping[str, Any]] = (await http.get("/goals")).json()["goals"]
    return rows


async def test_unknown_model_is_not_found_and_creates_no_goal(http: httpx.AsyncClient, members: Members) -> None:
    """A name that no agent and no pool ever registered is rejected before a goal is stored."""
    async with chatting(http) as client:
        with pytest.raises(NotFoundError, match="No agent or pool 'gpt-4o' has ever registered"):
            await client.chat.completions.create(model="gpt-4o", messages=ASKED)
    launched = await http.post("/goals", json={"goal": "Count.", "agent": "gpt-4o"})
    assert (launched.status_code, await _rows(http)) == (404, [])


async def test_a_conversation_is_a_goal(http: httpx.AsyncClient, plane: Plane, members: Members, door: Door) -> None:
    """Its last question is the goal and its answer the conclusion; who asks the same again, also by a stream, gets the same."""
    async with chatting(http) as client:
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(client.chat.completions.create(model="ada", messages=ASKED))
            goal_id, room = await _opened(http, members)
            await members.conclude(ADA, "Ten.", room)
        stream = await client.chat.completions.create(model="ada", messages=ASKED, stream=True)
        chunks = [chunk async for chunk in stream]
        names = [model.id async for model in client.models.list()]
    told = answer.result()
    assert (told.id, told.choices[0].message.content, told.choices[0].finish_reason) == (f"chatcmpl-{goal_id}", "Ten.", "stop")
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Ten."
    assert ({chunk.id for chunk in chunks}, names, told.usage is not None) == ({told.id}, ["ioa", "ada", "bob"], True)
    goal = (await plane.client.goal(GoalId(goal_id))).record.goal
    assert (goal.goal, goal.agent, [one.name for one in goal.inputs]) == ("Count to ten.", ADA, ["conversation.txt"])
    read = b"".join([piece async for piece in plane.client.stream(goal.inputs[0])]).decode()
    assert read == "system: Be short.\n\nuser: Hello.\n\nassistant: What is it?"
    door.clock.advance(timedelta(hours=1))
    async with chatting(http) as client, asyncio.timeout(10):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.chat.completions.create(model="ada", messages=ASKED)
    assert len(await _rows(http)) == 2


async def test_a_goal_that_fails_is_an_error_that_is_not_tried_again(http: httpx.AsyncClient, members: Members) -> None:
    """The reason is told, and neither the same question nor one by a stream begins anew."""
    asked: Any = [{"role": "user", "content": "Count."}]
    async with chatting(http) as client:
        with pytest.raises(UnprocessableEntityError, match="Cannot") as refused:
            async with asyncio.TaskGroup() as group:
                answer = group.create_task(_error_of(client, asked))
                _, room = await _opened(http, members)
                await members.say(ADA, ConcludeGroupDiscussion(), room)
                await members.say(ADA, Conclusion(content="Cannot.", reason=Reason.FAILED), room)
            raise answer.result()
        with pytest.raises(Exception, match="Cannot"):
            [chunk async for chunk in await client.chat.completions.create(model="ioa", messages=asked, stream=True)]
    assert (refused.value.code, len(await _rows(http))) == ("failed", 1)


async def _error_of(client: AsyncOpenAI, asked: Any) -> Exception:
    try:
        await client.chat.completions.create(model="ioa", messages=asked)
    except UnprocessableEntityError as error:
        return error
    raise AssertionError("it was answered")


async def test_chat_that_is_no_goal_is_rejected(http: httpx.AsyncClient) -> None:
    """Without a message of the user, with several answers, and with a model that is no name of a pool."""
    wrong: list[dict[str, Any]] = [
        {"model": "ioa", "messages": [{"role": "system", "content": "x"}]},
        {"model": "ioa", "messages": ASKED, "n": 2},
        {"model": "a b", "messages": ASKED},
    ]
    assert [(await http.post("/chat/completions", json=one)).status_code for one in wrong] == [422, 422, 404]


async def test_what_went_wrong_is_read_by_clients(http: httpx.AsyncClient) -> None:
    """OpenAI's client shows the words of an error, and what to do, of a wrong key as of a wrong request."""
    async with AsyncOpenAI(api_key="ioa_nobody_wrong", base_url=str(http.base_url)) as client:
        with pytest.raises(AuthenticationError, match="key is unknown"):
            await client.models.list()
    async with chatting(http) as client:
        picture: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]
        with pytest.raises(UnprocessableEntityError, match="POST /v1/goals takes files"):
            await client.chat.completions.create(model="ada", messages=picture)
