"""MCP servers over HTTP whose answers break off, or are made to be hard to read, and what that is to the calls of others."""

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
from ioa.adapters import mcp_http, mcp_server
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
    return _as_event(_told(asked, result=DONE))


def _as_event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"


class BareServer:
    """A server of MCP whose answers to calls are bytes; where there are none, its connection is closed.

    Attributes:
        answers: What is answered, by the name of a tool.
        called: How often each message has come: the method, of calls the tool, and of what answers the server's own its code.
        loses: So many messages lose their connection before they are looked at.
        heard: What is answered to what waits for nothing.
        schema: What its tools take.
        description: What they say that they do.
        letters: How many more the names of tools have on each page but the first, where all are others, and say that there is more.
        pages: How many pages of them there are; none has them never tell.
        first: What is answered to who asks for what a server has to say by itself.
        events: What is answered to who asks for events again.
        sets: The heads of what answers the beginning of a session.
        cookies: Which have come along with messages.
    """

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.called = Counter[str]()
        self.loses = 0
        self.heard = _whole(b"", status="202 Accepted")
        self.schema: dict[str, Any] = {"type": "object"}
        self.description = ""
        self.letters = 0
        self.pages = 1
        self.first = self.events = _whole(b"", status="405 No")
        self.sets: list[str] = []
        self.cookies = list[str]()
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

    async def _answer(self, method: str, heads: dict[str, str], asked: dict[str, Any]) -> bytes:
        if method == "DELETE":
            return self.heard
        if method != "POST":
            self.called["again" if "last-event-id" in heads else "first"] += 1
            return self.events if "last-event-id" in heads else self.first
        self.cookies.append(heads.get("cookie", ""))
        if self.loses:
            self.loses -= 1
            return b""
        told = f"answer {asked.get('error', {}).get('code')}"
        name = asked["params"]["name"] if asked.get("method") == "tools/call" else asked.get("method", told)
        self.called[name] += 1
        match name:
            case "initialize":
                return _whole(_told(asked, result=ABOUT), "application/json", *self.sets)
            case "tools/list":
                return await self._page(asked)
            case "slow":
                await self.may_answer.wait()
                return _whole(_told(asked, result=DONE))
            case "read":
                return _whole(_told(asked, result=DONE))
            case _ if "id" not in asked or "method" not in asked:
                return self.heard
            case _ if name in self.answers:
                return self.answers[name](asked)
            case _:
                return _whole(_told(asked, error={"code": -32601, "message": "What?"}))

    async def _page(self, asked: dict[str, Any]) -> bytes:
        if not self.pages:
            await self.may_answer.wait()
        what = {"inputSchema": self.schema, "description": self.description}
        tools = [{"name": tool, **what} for tool in ["slow", *self.answers]]
        tools += [{"name": "read", **what, "annotations": {"readOnlyHint": True}}]
        if (listed := self.called["tools/list"]) > 1:
            tools = [{**tool, "name": f"{tool['name']}{listed}{'x' * self.letters}"} for tool in tools]
        number = int(asked.get("params", {}).get("cursor", "0")) + 1
        more = {"nextCursor": str(number)} if number < self.pages or (self.letters and listed > 1) else {}
        return _whole(_told(asked, result={"tools": tools, **more}))


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], dict[str, Any]]:
    first, *head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    heads = {name: value.strip() for name, _, value in (line.partition(":") for line in head)}
    return first.split()[0].upper(), heads, json.loads(await reader.readexactly(int(heads.get("content-length", 0))) or "{}")


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
MUCH = {**DONE, "structuredContent": {"x": [0] * 100_000}}
LONG = {**DONE, "structuredContent": {"x": [10**90] * 11_000}}
ENDS = {
    "nothing": (lambda _: b"", "Nobody knows whether"),
    "half": (lambda _: BROKEN.encode(), "Nobody knows whether"),
    "elsewhere": (lambda _: BROKEN.replace("200 OK", "307 No\r\nlocation: /mcp/").encode(), "Nobody knows whether"),
    "packed": (
        lambda asked: _whole(gzip.compress(_told(asked, result=DONE)), "application/json", "content-encoding: gzip"),
        "is packed",
    ),
    "charset": (lambda asked: _whole(_event(asked), "text/event-stream; charset=bz2"), "done"),
    "many parts": (lambda asked: _whole(_told(asked, result=MUCH)), "more than 100,000 parts"),
    "long to read": (lambda asked: _whole(_told(asked, result=LONG)), "too much beside its texts"),
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
        bare.heard = b""
        waits, left = (asyncio.create_task(_call(server, "slow")) for _ in range(2))
        await eventually(lambda: bare.called["slow"] == 2)
        left.cancel()
        await eventually(lambda: bare.called["notifications/cancelled"] == 1)
        assert await _call(server, "read") == "done"
        bare.may_answer.set()
        assert (await waits, bare.called["initialize"]) == ("done", 1)


NEVER = {
    "nothing": b"HTTP/1.1 102 Later\r\n\r\n",
    "half": b"HTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\n",
}


@pytest.mark.parametrize("never", NEVER)
async def test_a_notice_that_is_never_heard_holds_up_no_call(never: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library sends notices one after another, and calls behind them; nor does a connection's end wait for its server."""
    monkeypatch.setattr(mcp_http, "_HEARD_WITHIN", timedelta(seconds=0.2))
    bare = BareServer({})
    async with asyncio.timeout(20), _opened(bare) as server:
        bare.heard = NEVER[never]
        left = asyncio.create_task(_call(server, "slow"))
        await eventually(lambda: bare.called["slow"] == 1)
        left.cancel()
        await eventually(lambda: bare.called["notifications/cancelled"] == 1)
        assert (await _call(server, "read"), bare.called["initialize"]) == ("done", 1)
        bare.may_answer.set()


SCHEMAS: dict[str, Any] = {"texts": {"enum": ["x" * 2_000_000]}, "names": {"x" * 2_000_000: 0}, "parts": {"enum": [0] * 20_000}}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_all_that_tools_say_is_bounded_together(name: str) -> None:
    """Each page was, and there may be a hundred."""
    bare = BareServer({})
    bare.schema, bare.pages = {"type": "object", "properties": {"x": SCHEMAS[name]}}, 100
    with pytest.raises(UnavailableError, match=r"server http://127\.0\.0\.1.* more than 10,000,000 characters"):
        async with _opened(bare):
            pass
    assert bare.called["tools/list"] == 3


async def test_an_agent_does_not_wait_for_tools_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which server does not tell them."""
    monkeypatch.setattr(mcp_server, "_OPENING", timedelta(seconds=0.5))
    bare = BareServer({})
    bare.pages = 0
    with pytest.raises(UnavailableError, match=r"server http://127\.0\.0\.1.*did not answer within 0\.5 s"):
        async with asyncio.timeout(20), _opened(bare):
            pass
    bare.may_answer.set()
