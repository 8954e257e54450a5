"""MCP servers over HTTP whose answers break off, or are made to be hard to read, and what that is to the calls of others."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from mcp import MCPError

from ioa import UnavailableError
from ioa.adapters.mcp_server import McpAddress, McpServer, open_mcp_server
from tests.rig.deadline import eventually

DONE = {"content": [{"type": "text", "text": "done"}]}
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "1"}}
Answer = Callable[[dict[str, Any]], bytes]


def _whole(content: bytes, kind: str = "application/json", *more: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(content)}", "mcp-session-id: 1", *more]
    return "\r\n".join([*head, "", ""]).encode() + content


def _told(asked: dict[str, Any], **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], **result}).encode()


def _event(asked: dict[str, Any]) -> bytes:
    return b"event: message\ndata: " + _told(asked, result=DONE) + b"\n\n"


class BareServer:
    """A server of MCP whose answers to calls are bytes; where there are none, its connection is closed.

    Attributes:
        answers: What is answered, by the name of a tool.
        called: How often each message has come: the method, and of calls the tool.
        loses: So many messages lose their connection before they are looked at.
        hears_end: Whether it answers that nobody waits for a call any more.
    """

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.called = Counter[str]()
        self.loses = 0
        self.hears_end = True
        self.may_answer = asyncio.Event()

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer all of one connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while said := await self._answer(*await _read(reader)):
                writer.write(said)
                await writer.drain()
                if b"broken" in said:
                    break
        writer.close()

    async def _answer(self, method: str, asked: dict[str, Any]) -> bytes:
        if method != "POST":
            return _whole(b"", status="405 No")
        if self.loses:
            self.loses -= 1
            return b""
        name = asked["params"]["name"] if asked.get("method") == "tools/call" else asked["method"]
        self.called[name] += 1
        match name:
            case "initialize":
                return _whole(_told(asked, result=ABOUT))
            case "tools/list":
                tools = [{"name": tool, "inputSchema": {"type": "object"}} for tool in ["slow", *self.answers]]
                tools += [{"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
                return _whole(_told(asked, result={"tools": tools}))
            case "slow":
                await self.may_answer.wait()
                return _whole(_told(asked, result=DONE))
            case "read":
                return _whole(_told(asked, result=DONE))
            case "notifications/cancelled" if not self.hears_end:
                return b""
            case _ if "id" not in asked:
                return _whole(b"", status="202 Accepted")
            case _ if name in self.answers:
                return self.answers[name](asked)
            case _:
                return _whole(_told(asked, error={"code": -32601, "message": "What?"}))


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    size = next((int(line.partition(":")[2]) for line in head if line.startswith("content-length:")), 0)
    return head[0].split()[0].upper(), json.loads(await reader.readexactly(size) or "{}")


@asynccontextmanager
async def _opened(bare: BareServer) -> AsyncIterator[McpServer]:
    async with await asyncio.start_server(bare.speak, "127.0.0.1", 0) as serving:
        address = McpAddress(f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/mcp")
        async with open_mcp_server(address) as server:
            yield server


async def _call(server: McpServer, name: str) -> str:
    tool = next(tool for tool in server.tools if tool.name == name)
    try:
        return (await server.call(tool, {})).text
    except (MCPError, UnavailableError) as error:
        return str(error)


BROKEN = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-is: broken\r\ncontent-length: 100\r\n\r\n{"
MUCH = {**DONE, "structuredContent": {"x": [0] * 400_000}}
ENDS = {
    "nothing": (lambda _: b"", "Nobody knows whether"),
    "half": (lambda _: BROKEN.encode(), "Nobody knows whether"),
    "elsewhere": (lambda _: BROKEN.replace("200 OK", "307 No\r\nlocation: /mcp/").encode(), "Nobody knows whether"),
    "packed": (
        lambda asked: _whole(gzip.compress(_told(asked, result=DONE)), "application/json", "content-encoding: gzip"),
        "is packed",
    ),
    "charset": (lambda asked: _whole(_event(asked), "text/event-stream; charset=bz2"), "done"),
    "long to read": (lambda asked: _whole(_told(asked, result=MUCH)), "too much beside its texts"),
    "endless": (lambda _: _whole(b" " * 28_000_001), "more than 28,000,000 bytes"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_what_becomes_of_one_exchange_ends_no_other(end: str) -> None:
    """Proxies end what takes them too long, and workers are killed: its answer never comes. Others' do."""
    answer, told = ENDS[end]
    bare = BareServer({"this": answer})
    async with _opened(bare) as server:
        other = asyncio.create_task(_call(server, "slow"))
        await eventually(lambda: bare.called["slow"] == 1)
        assert told in await _call(server, "this")
        bare.may_answer.set()
        assert (await other, bare.called["initialize"], bare.called["this"]) == ("done", 1, 1)


async def test_what_only_reads_is_asked_again_over_the_same_connection() -> None:
    """The connection of all stands; that of one request did not."""
    bare = BareServer({})
    async with _opened(bare) as server:
        bare.loses = 1
        assert (await _call(server, "read"), bare.called["read"], bare.called["initialize"]) == ("done", 1, 1)


async def test_a_server_that_does_not_answer_at_all_is_opened_anew() -> None:
    """Neither the call nor the question whether it is there has come to anything."""
    bare = BareServer({})
    async with _opened(bare) as server:
        bare.loses = 2
        assert (await _call(server, "read"), bare.called["read"], bare.called["initialize"]) == ("done", 1, 2)


async def test_what_cannot_be_told_to_a_server_ends_no_call() -> None:
    """That nobody waits for a call any more is told by a request of its own, whose connection may break too."""
    bare = BareServer({})
    async with _opened(bare) as server:
        bare.hears_end = False
        waits, left = (asyncio.create_task(_call(server, "slow")) for _ in range(2))
        await eventually(lambda: bare.called["slow"] == 2)
        left.cancel()
        await eventually(lambda: bare.called["notifications/cancelled"] == 1)
        assert await _call(server, "read") == "done"
        bare.may_answer.set()
        assert (await waits, bare.called["initialize"]) == ("done", 1)


async def test_events_are_taken_in_a_few_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    """The library takes all events of a piece in without a pause, and logs those that it does not know."""
    event = b"event: 12345\ndata\n\n"
    bare = BareServer({"this": lambda asked: _whole(event * 50_000 + _event(asked), "text/event-stream")})
    most = 0

    async def count() -> None:
        nonlocal most
        while True:
            most = max(most, len(caplog.records))
            caplog.clear()
            await asyncio.sleep(0)

    async with _opened(bare) as server:
        with caplog.at_level(logging.WARNING, "mcp.client.streamable_http"):
            counting = asyncio.create_task(count())
            assert await _call(server, "this") == "done"
            counting.cancel()
    assert 0 < most <= 4_000 // len(event) + 1
