"""Servers of somebody else as agents: what they may not do to us, and what is said when they do not keep to their protocol."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from ioa import DeclinedError, InvalidInputError, IoaError, TaskError, adopt
from ioa.adopt import mcp_tools, remote_agents
from ioa.adopt.endpoint import MAX_ANSWER_BYTES, MAX_FILES_BYTES, Calls
from ioa.hosting.agent import Agent
from ioa.testing import RecordingContext, ScriptedModel, input_file
from ioa.testing.foreign_agent import ForeignAgent
from ioa_testkit import System
from tests.unit.adopt.rows import DOES, ROWS, mcp_server
from tests.unit.adopt.servers import Reply, Request, serving


async def _run(agent: Agent, ctx: RecordingContext, task: str = "do it") -> str:
    answer = agent.function(task, ctx)
    assert not isinstance(answer, str)
    return await answer


async def _failing(adopted: Callable[..., Agent], route: Callable[[Request], Reply], folder: Path, **options: Any) -> IoaError:
    with serving(route) as url, pytest.raises(IoaError) as raised:
        await _run(adopted("other", url, description=DOES, **options), RecordingContext(folder))
    return raised.value


async def test_a_webhook_gets_the_task_with_its_files(tmp_path: Path) -> None:
    """It need not reach this machine's disk, and learns by a header that a request came before."""
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
        ((202, {}, {"Location": "http://elsewhere.example/jobs/1"}), "does not say where on it to ask"),
        ((202, {}, {}), "does not say where on it to ask"),
        ((202, {}, {"Location": "//" + "\xcc\x95\xcc\x80" * 40}), "does not say where on it to ask"),
        ((202, {}, {"Location": "/" * 8_001}), "does not say where on it to ask"),
        ((403, {"detail": "no such key"}, {}), "failed: status 403, no such key"),
        ((200, {"error": "no \x1b[2J vase"}, {}), "failed: no ␛[2J vase"),
        ((200, {"result": "x", "artifacts": [{"name": "x"}]}, {}), "has sent a file that cannot be read"),
        ((200, {"result": "x", "spend": {"tokens": -1}}, {}), "Nobody can spend"),
        ((200, b'{"result":"%b"}' % (b"x" * MAX_ANSWER_BYTES), {}), "has more than 28,202,666 bytes"),
        ((200, gzip.compress(b'{"result":"x"}'), {"Content-Encoding": "gzip"}), "its answer is packed"),
        ((200, b'{"result":"x","more":[%b[]]}' % (b"[]," * 400_000), {}), "answered without a result"),
        ((200, b'{"result":"x","more":[%b""]}' % (b'"",' * 100_000), {}), "answered without a result"),
        ((200, '{"result":"x"}'.encode("utf-16"), {}), "answered without a result"),
    ],
)
async def test_a_webhook_that_misbehaves_fails_the_task(reply: Reply, why: str, tmp_path: Path) -> None:
    """It leads us to no other server, which our keys are not for, and its words are shown, not obeyed."""
    assert why in str(await _failing(adopt.webhook, lambda _: reply, tmp_path))


@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
async def test_an_answer_is_read_whatever_its_headers_say(charset: str, tmp_path: Path) -> None:
    """A file of `Übersicht.pdf`, or a proxy in Zürich, failed the task by an error of a library."""
    named = {"Content-Disposition": 'attachment; filename="Übersicht.pdf"'.encode(charset).decode("latin-1")}
    with serving(lambda _: (200, {"result": "ok"}, named)) as url:
        assert await _run(adopt.webhook("hook", url, description=DOES), RecordingContext(tmp_path)) == "ok"


async def test_an_answer_is_asked_for_unpacked_and_may_hold_the_files_of_a_task(tmp_path: Path) -> None:
    """As much as a task may send along, in base64, and a text beside it."""
    asked: list[str | None] = []
    files = [{"name": f"{number}.bin", "data": base64.b64encode(bytes(MAX_FILES_BYTES // 2)).decode()} for number in range(2)]

    def route(request: Request) -> Reply:
        asked.append(request.headers["Accept-Encoding"])
        return 200, {"result": '\\"' * 50_000, "artifacts": files}, {}

    ctx = RecordingContext(tmp_path)
    with serving(route) as url:
        answer = await _run(adopt.webhook("hook", url, description=DOES), ctx)
    assert (asked, len(answer), sum(made.path.stat().st_size for made in ctx.artifacts)) == (["identity"], 100_000, MAX_FILES_BYTES)


@pytest.mark.parametrize("name", ["f%d", "../%d"])
async def test_rejected_files_of_a_remote_agent_are_not_fetched(name: str, tmp_path: Path) -> None:
    """Too many files, or a file without a plain name, fail the task before a download."""
    names = [name % number for number in range(101 if "f" in name else 1)]
    fetched: list[str] = []

    def route(request: Request) -> Reply:
        here = f"http://{request.headers['Host']}/"
        if "/file/" in request.path:
            fetched.append(request.path)
            return 200, b"x", {}
        parts = [{"file": {"name": one, "uri": f"{here}file/{number}"}} for number, one in enumerate(names)]
        said = {"url": here, "protocolVersion": "0.3"}
        return 200, {**said, "result": {"status": {"state": "completed"}, "artifacts": [{"parts": parts}]}}, {}

    why = str(await _failing(adopt.a2a, route, tmp_path))
    assert (("may attach 100 files" in why) or ("is no plain file name" in why), fetched) == (True, [])


async def test_an_answer_that_does_not_end_fails_the_task() -> None:
    """However steadily more of it comes."""

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0)
                yield b" "

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Endless()))
    async with httpx.AsyncClient(transport=transport) as http:
        calls = Calls(http, "other.example", timedelta())
        with pytest.raises(TaskError, match=r"other\.example cannot be reached: TimeoutError"):
            await calls.send("GET", "http://other.example/", is_repeatable=False)


@pytest.mark.parametrize(
    ("state", "error", "why"),
    [
        ("TASK_STATE_REJECTED", DeclinedError, "has rejected the task: which city?"),
        ("TASK_STATE_INPUT_REQUIRED", TaskError, "failed: input-required, which city?"),
    ],
)
async def test_a_remote_agent_may_refuse_or_ask_back(state: str, error: type, why: str, tmp_path: Path) -> None:
    """A rejected task is declined, so that another agent is asked; a question that nobody answers fails the task."""

    def route(request: Request) -> Reply:
        if request.method == "GET":
            url = f"http://{request.headers['Host']}/rpc"
            return 200, {"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}, {}
        status = {"state": state, "message": {"parts": [{"text": "which city?"}]}}
        return 200, {"result": {"task": {"id": "1", "status": status}}}, {}

    raised = await _failing(adopt.a2a, route, tmp_path)
    assert (type(raised), why in str(raised)) == (error, True)


async def test_a_card_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    """Our keys are for the server that they were given for."""
    card = {"url": "http://elsewhere.example/rpc", "protocolVersion": "0.3.0"}
    assert "no card of an agent" in str(await _failing(adopt.a2a, lambda _: (200, card, {}), tmp_path))


async def test_what_a_server_says_of_itself_is_its_card(tmp_path: Path) -> None:
    """Whoever adopts it at the command line need not say it again."""
    card = {"description": "Translates", "skills": [{"name": "French", "examples": ["say bread"]}, {"name": "Italian"}]}
    with serving(lambda _: (200, card, {})) as url:
        assert await remote_agents.said_of_itself(url, {}) == ("Translates", ["say bread", "Italian"])
    assert await mcp_tools.said_of_itself(mcp_server(tmp_path), None, {}) == ("worker: perform", ["perform"])


async def test_an_mcp_server_without_a_tool_is_for_a_model(tmp_path: Path) -> None:
    """It needs one to start; a tool that the server does not have, or that takes more than a text, is refused then."""
    target = mcp_server(tmp_path)
    assert adopt.mcp("all", target, description=DOES, model=ScriptedModel([]), tags=["x"]).needs_model
    with pytest.raises(InvalidInputError, match=r"has no tool 'other'\. It has: perform"):
        async with adopt.mcp("one", target, tool="other", description=DOES).opened():
            pass


async def test_an_adopted_agent_finishes_a_goal(ioa_system: System, tmp_path: Path) -> None:
    """It registers, is found and works in a group as any agent."""
    with ROWS["webhook"](tmp_path) as hook, ROWS["command"](tmp_path) as worker:
        async with ioa_system.serve(hook.with_card(examples=["echo hello"]), worker) as running:
            goal = await running.run("echo hello")
    assert (goal.succeeded, "hello" in goal.content, ForeignAgent(tmp_path).noted()) == (True, True, [])
