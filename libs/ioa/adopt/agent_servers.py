"""A server of the Agent Protocol, as AutoGPT is one, as an agent: https://agentprotocol.ai."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any, Unpack

from ioa.adopt.endpoint import Calls, Endpoint, read_json, read_object
from ioa.adopt.membership import Card, adopted, failure, with_results
from ioa.agent.definition import TaskContext
from ioa.agent.workspace import MAX_ARTIFACT_BYTES, check_names
from ioa.errors import InvalidInputError, TaskError
from ioa.hosting.agent import Agent

_TASKS = "ap/v1/agent/tasks"
_SHOWN_CHARS = 200


def agent_protocol(
    agent_id: str,
    url: str,
    *,
    description: str,
    max_steps: int = 20,
    headers: Mapping[str, str] | None = None,
    timeout: timedelta = timedelta(minutes=10),
    **card: Unpack[Card],
) -> Agent:
    """Adopt a server that speaks the Agent Protocol: it is given a task, and takes steps at it until it says which was the last.

    Each step is reported, and its `task_cumulative_cost` counted. Files of the task are uploaded, and those that it makes attached.
    The output of the last step is the result. It finds the task's id in `additional_input`. Cancelling closes the connection of the
    step that runs, and no other is asked for.

    Args:
        agent_id: As of any agent.
        url: The server's address, without `/ap/v1`.
        description: What it does.
        max_steps: After how many steps without a last one the task has failed.
        headers: What each request carries, such as `Authorization`.
        timeout: How long one step may take.
        card: What else a card may say.

    Raises:
        InvalidInputError: The address is none of HTTP, there are no steps, or the card cannot be valid.
    """
    if max_steps < 1:
        raise InvalidInputError(f"An agent cannot act in {max_steps} steps.", hint="Give max_steps of 1 or more.")
    endpoint = Endpoint(url.removesuffix("/") + "/", dict(headers or {}), timeout)

    async def work(task: str, ctx: TaskContext) -> str:
        async with endpoint.open() as calls:
            about = {"task_id": ctx.task_id, "task_key": ctx.task_key, "attempt": ctx.attempt, "goal": ctx.goal}
            order = {"input": with_results(task, ctx), "additional_input": about}
            created = await read_object(await calls.send("POST", _TASKS, json=order))  # a task without steps does nothing
            place = f"{_TASKS}/{_required(created, 'task_id', calls)}"
            await _upload(calls, place, ctx)
            last: dict[str, Any] | None = None
            async for step in _steps(calls, place, max_steps, ctx):
                last = step
            if last is None or not last.get("is_last"):
                raise TaskError(f"{calls.whose} was not done within {max_steps} steps.", hint="Allow more by max_steps.")
            await _fetch(calls, place, ctx)
            return _required(last, "output", calls)

    return adopted(agent_id, description, card, work)


async def _steps(calls: Calls, place: str, most: int, ctx: TaskContext) -> AsyncIterator[dict[str, Any]]:
    """Ask for steps, up to the last one, and tell of them."""
    counted = 0.0
    for number in range(1, most + 1):
        step = await read_object(await calls.send("POST", f"{place}/steps", is_repeatable=False, json={}))
        output = step.get("output")
        if step.get("status") == "failed":
            raise failure(calls.whose, output or "a step failed")
        ctx.progress(f"step {number}: {str(output or step.get('name') or '')[:_SHOWN_CHARS]}")
        more = step.get("additional_output")
        cost = more.get("task_cumulative_cost") if isinstance(more, dict) else None
        if isinstance(cost, int | float) and cost > counted:
            ctx.spend(cost=cost - counted)
            counted = cost
        yield step
        if step.get("is_last"):
            return


async def _upload(calls: Calls, place: str, ctx: TaskContext) -> None:
    for file in (*ctx.inputs, *(file for result in ctx.results for file in result.artifacts)):
        data = await asyncio.to_thread(file.path.read_bytes)
        await calls.send("POST", f"{place}/artifacts", files={"file": (file.name, data, file.media_type)})


async def _fetch(calls: Calls, place: str, ctx: TaskContext) -> None:
    """Attach what the agent has made. Servers send the list bare, as the first did, or in an object, as the specification says."""
    answer = await read_json(await calls.send("GET", f"{place}/artifacts"))
    listed = answer.get("artifacts") if isinstance(answer, dict) else answer
    made = [one for one in listed or () if one.get("agent_created", True)]
    files = [(_required(one, "file_name", calls), _required(one, "artifact_id", calls)) for one in made]
    check_names([name for name, _ in files])
    for name, artifact_id in files:
        data = await calls.send("GET", f"{place}/artifacts/{artifact_id}", max_bytes=MAX_ARTIFACT_BYTES)
        await asyncio.to_thread(ctx.artifact, name, data.content)


def _required(said: Mapping[str, Any], name: str, calls: Calls) -> str:
    if not isinstance(said.get(name), str) or not said[name]:
        raise TaskError(f"{calls.whose} has sent no {name}, as the Agent Protocol asks for.")
    return str(said[name])
