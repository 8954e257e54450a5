"""A server that takes a task by one POST, as an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urljoin

from ioa.adopt.endpoint import LOOKS, MAX_URL_CHARS, Calls, Endpoint, attach, finished, read_object, shown_host, with_files
from ioa.adopt.membership import Card, adopted, failure, hear
from ioa.agent.definition import TaskContext
from ioa.errors import TaskError
from ioa.hosting.agent import Agent
from ioa.retry import pauses

if TYPE_CHECKING:
    import httpx

_ACCEPTED = 202


def webhook(
    agent_id: str,
    url: str,
    *,
    description: str,
    headers: Mapping[str, str] | None = None,
    timeout: timedelta = timedelta(minutes=10),
    **card: Unpack[Card],
) -> Agent:
    """Adopt a server that does tasks which are posted to it.

    It is sent one object, `task, goal, goal_id, task_id, task_key, attempt, inputs, results`, whose files hold their content as
    `data` in base64, with the task's key as `Idempotency-Key`: a request may come again, and means the same. Status 200 has the
    result: `{"result": …}` or `{"error": …}`, besides `"artifacts": [{"name": …, "data": …}]` and `"spend"`. Status 202 with a
    `Location` of the same server says that it takes time: that is asked until it answers 200, and may tell `progress` and a
    `fraction` with 202 meanwhile. Cancelling sends a DELETE there, or closes the connection.

    Args:
        agent_id: As of any agent.
        url: Where tasks are posted.
        description: What it does.
        headers: What each request carries, such as `Authorization`.
        timeout: How long one answer may take.
        card: What else a card may say.

    Raises:
        InvalidInputError: The address is none of HTTP, or the card cannot be valid.
    """
    endpoint = Endpoint(url, dict(headers or {}), timeout)

    async def post(task: str, ctx: TaskContext) -> str:
        async with endpoint.open() as calls:
            order = await with_files(task, ctx)
            asked = calls.send("POST", url, json=order, headers={"Idempotency-Key": ctx.task_key})
            answer = await finished(asked, lambda late: _give_up(calls, url, late))
            said = await read_object(answer)
            if answer.status_code == _ACCEPTED:
                said = await _until_done(calls, _place(url, answer), ctx)
        return await _result(said, ctx, calls.whose)

    return adopted(agent_id, description, card, post)


async def _give_up(calls: Calls, url: str, answer: httpx.Response) -> None:
    if answer.status_code == _ACCEPTED:
        await calls.leave("DELETE", _place(url, answer))


def _place(url: str, answer: httpx.Response) -> str:
    """Return where an accepted task is asked after.

    Raises:
        TaskError: The server does not say, or names another server, which the headers are not for.
    """
    told = str(answer.headers.get("location", ""))
    # Before anything reads it: what is not ASCII is no address (RFC 3986), and is put in order first, which may take seconds.
    is_one = 0 < len(told) <= MAX_URL_CHARS and told.isascii()
    place = urljoin(url, told) if is_one else ""
    if not place.startswith(urljoin(url, "/")):
        raise TaskError(
            f"{shown_host(url)} has accepted a task and does not say where on it to ask.",
            hint="Send a Location with 202, in ASCII.",
        )
    return place


async def _until_done(calls: Calls, place: str, ctx: TaskContext) -> dict[str, Any]:
    pause = pauses(*LOOKS)
    try:
        while True:
            await asyncio.sleep(next(pause))
            answer = await calls.send("GET", place)
            said = await read_object(answer)
            if answer.status_code != _ACCEPTED:
                return said
            hear(said, ctx)
    except asyncio.CancelledError:
        await calls.leave("DELETE", place)
        raise


async def _result(said: Mapping[str, Any], ctx: TaskContext, whose: str) -> str:
    hear(said, ctx)
    if "error" in said:
        raise failure(whose, said["error"])
    if not isinstance(said.get("result"), str):
        raise TaskError(f"{whose} has answered without a result.", hint='Its answer has to be {"result": "…"} or {"error": "…"}.')
    await asyncio.to_thread(attach, ctx, said.get("artifacts"), whose)
    return str(said["result"])
