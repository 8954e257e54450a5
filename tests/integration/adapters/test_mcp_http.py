"""MCP servers over HTTP whose answers break off or cannot be read, and the effect on other calls."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from mcp import MCPError

from ioa import UnavailableError
from ioa.adapters import mcp_client
from ioa.adapters.mcp_client import McpAddress, McpServer, open_mcp_server
from tests.rig.deadline import eventually

DONE = {"content": [{"type": "text", "text": "done"}]}
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "1"}}
Answer = Callable[[dict[str, Any]], bytes]


def _whole(content: bytes, kind: str = "application/json", *more: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(content)}", "mcp-session-id: 1", *more]
    return "\r\n".join([*head, "", ""]).encode() + content


def _message(asked: dict[str, Any], **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], **result}).encode()


def _event(asked: dict[str, Any]) -> bytes:
    return _as_event(_message(asked, result=DONE))


def _as_event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"


class BareServer:
    """An MCP server whose answers to calls are bytes; an empty answer closes the connection.

    Attributes:
        answers: Answers by the name of a tool.
        called: Number of messages by tool, or by method for other messages.
        forgets: Whether the server answers 404 to a session until a new session is opened.
        heard: Answer to a notification.
        has_tools: Whether the server answers with its tools.
    """

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.called = Counter[str]()
        self.forgets = False
        self.heard = _whole(b"", status="202 Accepted")
        self.has_tools = True
        self.may_answer = asyncio.Event()

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while said := await self._answer(*await _read(reader)):
                writer.write(said)
                await writer.drain()
                if b"broken" in said:
                    break
        writer.close()

    async def _answer(self, method: str, is_session: bool, asked: dict[str, Any]) -> bytes:
        if method != "POST" or (self.forgets and is_session):
            lost = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}'
            return self.heard if method == "DELETE" else _whole(lost, status="404 No")
        name = asked["params"]["name"] if asked.get("method") == "tools/call" else asked.get("method", "answer")
        self.called[name] += 1
        match name:
            case "initialize":
                self.forgets = False
                return _whole(_message(asked, result=ABOUT))
            case "tools/list":
                return await self._tools(asked)
            case "slow":
                await self.may_answer.wait()
                return _whole(_message(asked, result=DONE))
            case "read":
                return _whole(_message(asked, result=DONE))
            case _ if "id" not in asked or "method" not in asked:
                return self.heard
            case _ if name in self.answers:
                return self.answers[name](asked)
            case _:
                return _whole(_message(asked, error={"code": -32601, "message": "What?"}))

    async def _tools(self, asked: dict[str, Any]) -> bytes:
        if not self.has_tools:
            await self.may_answer.wait()
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "read", *self.answers)]
        return _whole(_message(asked, result={"tools": tools}))


async def _read(reader: asyncio.StreamReader) -> tuple[str, bool, dict[str, Any]]:
    first, *head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    length = next((int(line.partition(":")[2]) for line in head if line.startswith("content-length")), 0)
    is_session = any(line.startswith("mcp-session-id") for line in head)
    return first.split()[0].upper(), is_session, json.loads(await reader.readexactly(length) or "{}")


@asynccontextmanager
async def _opened(bare: BareServer) -> AsyncIterator[McpServer]:
    async with await asyncio.start_server(bare.speak, "127.0.0.1", 0) as serving:
        address = McpAddress(f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/mcp")
        try:
            async with open_mcp_server(address) as server:
                yield server
        finally:
            bare.may_answer.set()  # CPython 3.12 and newer wait for the end of the connections


async def _call(server: McpServer, name: str) -> str:
    tool = next(tool for tool in server.tools if tool.name == name)
    try:
        return (await server.call(tool, {})).text
    except (MCPError, UnavailableError) as error:
        return str(error)


BROKEN = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-is: broken\r\ncontent-length: 100\r\n\r\n{"
UNREADABLE = {
    "packed": (
        lambda asked: _whole(gzip.compress(_message(asked, result=DONE)), "application/json", "content-encoding: gzip"),
        "Failed to parse",
    ),
    "event": (lambda asked: _whole(_event(asked), "text/event-stream"), "done"),
    "endless": (lambda _: _whole(b" " * 28_000_001), "more than 28,000,000 bytes"),
}


@pytest.mark.parametrize("answer", UNREADABLE)
async def test_unreadable_answer_fails_its_own_call_only(answer: str) -> None:
    """Other calls over the same connection go on."""
    given, told = UNREADABLE[answer]
    bare = BareServer({"this": given})
    async with _opened(bare) as server:
        other = asyncio.create_task(_call(server, "slow"))
        await eventually(lambda: bare.called["slow"] == 1)
        assert told in await _call(server, "this")
        bare.may_answer.set()
        assert (await other, bare.called["initialize"], bare.called["this"]) == ("done", 1, 1)


@pytest.mark.parametrize("broken", [b"", BROKEN.encode()], ids=["nothing", "half"])
async def test_broken_connection_is_opened_again(broken: bytes) -> None:
    """Its open calls fail with an error; a later call succeeds."""
    bare = BareServer({"this": lambda _: broken})
    async with _opened(bare) as server:
        other = asyncio.create_task(_call(server, "slow"))
        await eventually(lambda: bare.called["slow"] == 1)
        assert "was lost during the call. The effect of the call is unknown" in await _call(server, "this")
        assert "was lost during the call" in await other
        assert (await _call(server, "read"), bare.called["initialize"], bare.called["this"]) == ("done", 2, 1)
        bare.may_answer.set()


async def test_forgotten_session_is_opened_again() -> None:
    """The server answers 404. The call raises an error, and the next one succeeds over another session."""
    bare = BareServer({})
    async with _opened(bare) as server:
        for _ in range(2):
            bare.forgets = True
            assert "was lost during the call" in await _call(server, "read")
            assert await _call(server, "read") == "done"
    assert (bare.called["read"], bare.called["initialize"]) == (2, 3)


async def test_server_without_an_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the server."""
    monkeypatch.setattr(mcp_client, "_OPENING", timedelta(seconds=0.5))
    bare = BareServer({})
    bare.has_tools = False
    with pytest.raises(UnavailableError, match=r"server http://127\.0\.0\.1.*did not answer within 0\.5 s"):
        async with asyncio.timeout(20), _opened(bare):
            pass
