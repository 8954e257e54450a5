"""A server that takes a task by one POST, as an agent."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Unpack
from urllib.parse import urljoin

import httpx

from ioa.adopt.adopted_member import Card, adopted, as_object, failure, hear
from ioa.adopt.endpoint import POLL_SECONDS, Endpoint, ServerClient, check_size, finished, read_object
from ioa.agent.task_context import InputFile, TaskContext
from ioa.errors import TaskError
from ioa.hosting.agent import Agent
from ioa.retry import pauses

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
    """Adopt a server that receives tasks by POST.

    It receives one object, `task, goal, goal_id, task_id, task_key, attempt, inputs, results`; files contain their content as
    `data` in base64. The task's key is the `Idempotency-Key`: the same request may be repeated. Status 200 has the result:
    `{"result": …}` or `{"error": …}`, also `"artifacts": [{"name": …, "data": …}]` and `"spend"`. Status 202 with a `Location` on
    the same server postpones the result: the location is polled until it answers 200, and may report `progress` and a `fraction`
    with 202. Cancelling sends a DELETE to the location, or closes the connection.

    Args:
        agent_id: As for `ioa.Agent`.
        url: The address for tasks.
        description: What the agent does.
        headers: Headers of each request, such as `Authorization`.
        timeout: Timeout for one answer.
        card: More fields of the card.

    Raises:
        InvalidInputError: The address is not an HTTP URL, or the card is not valid.
    """
    endpoint = Endpoint(url, dict(headers or {}), timeout)

    async def post(task: str, ctx: TaskContext) -> str:
        check_size(ctx.files)
        order = await asyncio.to_thread(as_object, task, ctx, _with_data)
        async with endpoint.open() as client:

            async def cancel(answer: httpx.Response) -> None:
                if answer.status_code == _ACCEPTED:
                    await client.leave(client.delete(_location(endpoint, answer)))

            answer = await finished(client.post(url, json=order, headers={"Idempotency-Key": ctx.task_key}), cancel)
            result = read_object(answer)
            if answer.status_code == _ACCEPTED:
                result = await _until_done(client, _location(endpoint, answer), ctx)
        hear(result, ctx)
        if "error" in result:
            raise failure(endpoint.host, result["error"])
        if not isinstance(text := result.get("result"), str):
            raise TaskError(
                f"{endpoint.host} has answered without a result.", hint='Answer with {"result": "…"} or {"error": "…"}.'
            )
        await asyncio.to_thread(_attach, ctx, result.get("artifacts"), endpoint.host)
        return text

    return adopted(agent_id, description, card, post)


def _with_data(file: InputFile) -> Mapping[str, str]:
    return {"data": base64.b64encode(file.path.read_bytes()).decode()}


def _location(endpoint: Endpoint, answer: httpx.Response) -> str:
    """Return the address to poll for an accepted task.

    Raises:
        TaskError: The answer has none, or it is on another server.
    """
    location = str(answer.headers.get("location", ""))
    with suppress(ValueError, httpx.InvalidURL):
        absolute = urljoin(endpoint.url, location)
        if location and endpoint.is_own(absolute):
            return absolute
    raise TaskError(f"{endpoint.host} has accepted a task without an address to poll.", hint="Send a Location on it with 202.")


async def _until_done(client: ServerClient, location: str, ctx: TaskContext) -> dict[str, Any]:
    pause = pauses(*POLL_SECONDS)
    try:
        while True:
            await asyncio.sleep(next(pause))
            answer = await client.get(location)
            result = read_object(answer)
            if answer.status_code != _ACCEPTED:
                return result
            hear(result, ctx)
    except asyncio.CancelledError:
        await client.leave(client.delete(location))
        raise


def _attach(ctx: TaskContext, files: object, host: str) -> None:
    """Attach the files of an answer: a list of `{"name": …, "data": base64}`."""
    for one in files if isinstance(files, list) else ():
        try:
            name, data = str(one["name"]), base64.b64decode(one["data"], validate=True)
        except (TypeError, KeyError, ValueError):
            raise TaskError(f"{host} has sent a file that cannot be read.", hint="Send name, and data in base64.") from None
        ctx.artifact(name, data, one.get("media_type"))
