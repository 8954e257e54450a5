"""Foreign servers as agents: limits, and errors of the protocol."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ioa import InvalidInputError, IoaError, TaskError, adopt
from ioa.adopt import mcp_tools, remote_agents
from ioa.adopt.endpoint import MAX_ANSWER_BYTES, Endpoint
from ioa.hosting.agent import Agent
from ioa.testing import RecordingContext, ScriptedModel, input_file
from ioa.testing.foreign_agent import ForeignAgent
from ioa_testkit import System
from tests.contract.adopt.rows import DOES, ROWS, mcp_server
from tests.contract.adopt.servers import Reply, Request, serving


async def _run(agent: Agent, ctx: RecordingContext, task: str = "do it") -> str:
    answer = agent.function(task, ctx)
    assert not isinstance(answer, str)
    return await answer


async def _failing(adopted: Callable[..., Agent], route: Callable[[Request], Reply], folder: Path, **options: Any) -> IoaError:
    with serving(route) as url, pytest.raises(IoaError) as raised:
        await _run(adopted("other", url, description=DOES, **options), RecordingContext(folder))
    return raised.value


async def test_webhook_receives_the_task_with_its_files(tmp_path: Path) -> None:
    """A header identifies a repeated request."""
    asked: list[Request] = []
    (tmp_path / "cars.csv").write_text("a\nb\n")

    def route(request: Request) -> Reply:
        asked.append(request)
        return (503, {}, {}) if len(asked) == 1 else (200, {"result": "2 rows"}, {})

    ctx = RecordingContext(tmp_path, goal="Count", inputs=[input_file(tmp_path / "cars.csv")])
    with serving(route) as url:
        headers = {"Authorization": "Bearer secret"}
        assert await _run(adopt.webhook("hook", url, description=DOES, headers=headers), ctx) == "2 rows"
    assert [(one.headers["Idempotency-Key"], one.headers["Authorization"]) for one in asked] == [("key-1", "Bearer secret")] * 2
    assert asked[1].said == {
        "task": "do it", "goal": "Count", "goal_id": "goal-1", "task_id": "task-1", "task_key": "key-1",
        "attempt": 1, "results": [],
        "inputs": [{"name": "cars.csv", "media_type": "text/csv", "data": "YQpiCg=="}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ((202, {}, {"Location": "http://elsewhere.example/jobs/1"}), "without an address to poll"),
        ((202, {}, {}), "without an address to poll"),
        ((202, {}, {"Location": "http://[x"}), "without an address to poll"),
        ((403, {"detail": "no such key"}, {}), 'failed: status 403, {"detail": "no such key"}'),
        ((200, {"error": "no \x1b[2J vase"}, {}), "failed: no ␛[2J vase"),
        ((200, {"result": "x", "artifacts": [{"name": "x"}]}, {}), "has sent a file that cannot be read"),
        ((200, {"result": "x", "spend": {"tokens": -1}}, {}), "tokens, answer_tokens and cost"),
        ((200, b'{"result":"%b"}' % (b"x" * MAX_ANSWER_BYTES), {}), "has more than 28,202,666 bytes"),
        ((200, gzip.compress(b'{"result":"x"}'), {"Content-Encoding": "gzip"}), "its answer is packed"),
        ((200, b"not JSON", {}), "answered without a result"),
    ],
)
async def test_invalid_reply_of_a_webhook_fails_the_task(reply: Reply, why: str, tmp_path: Path) -> None:
    """The agent follows no address of another server, and shows control characters."""
    assert why in str(await _failing(adopt.webhook, lambda _: reply, tmp_path))


async def test_endless_answer_fails_the_task() -> None:
    """The timeout is for the whole answer, however steadily it arrives."""
    has_ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b" " * 100)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()
        has_ended.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Endpoint(f"http://127.0.0.1:{port}/", {}, timedelta(seconds=0.2)).open() as client:
            with pytest.raises(TaskError, match=r"127\.0\.0\.1:\d+ cannot be reached: TimeoutError"):
                await client.post("/")
        await has_ended.wait()


async def test_description_of_a_server_is_read(tmp_path: Path) -> None:
    """The command line uses it for the card."""
    skills = [{"name": "French", "examples": ["say bread"]}, {"name": "Italian"}]
    card = {"description": "Translates", "url": "http://localhost/", "skills": skills}
    with serving(lambda _: (200, card, {})) as url:
        assert await remote_agents.said_of_itself(url, {}) == ("Translates", ["say bread", "Italian"])
    assert await mcp_tools.said_of_itself(mcp_server(tmp_path), None, {}) == ("worker: perform", ["perform"])


async def test_mcp_server_without_a_tool_needs_a_model(tmp_path: Path) -> None:
    """A missing tool is rejected at the start."""
    target = mcp_server(tmp_path)
    assert adopt.mcp("all", target, description=DOES, model=ScriptedModel([]), tags=["x"]).needs_model
    with pytest.raises(InvalidInputError, match=r"has no tool 'other'\. It has: perform"):
        async with adopt.mcp("one", target, tool="other", description=DOES).opened():
            pass


async def test_adopted_agent_finishes_a_goal(ioa_system: System, tmp_path: Path) -> None:
    """It registers, and discovery finds it."""
    with ROWS["webhook"](tmp_path) as hook, ROWS["command"](tmp_path) as worker:
        async with ioa_system.serve(hook.with_card(examples=["echo hello"]), worker) as running:
            goal = await running.run("echo hello")
    assert (goal.succeeded, "hello" in goal.content, ForeignAgent(tmp_path).noted()) == (True, True, [])
