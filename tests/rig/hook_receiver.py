"""A receiver of webhooks that answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Receiver:
    """Takes messages.

    Attributes:
        url: Where.
        answers: The status of each, one after the other; 200 when they are used up, 0 never answers.
        asked: The first line of each request.
        taken: Who has sent what: headers and body.
    """

    url: str = ""
    answers: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, unless its sender ends, or has waited enough, before it is whole."""
        try:
            await self._answer(reader, writer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked, *head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        self.asked.append(asked)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head)}
        self.taken.append((headers, await reader.readexactly(int(headers["content-length"]))))
        status = self.answers.pop(0) if self.answers else 200
        if status:
            writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:1/\r\n\r\n".encode())
        else:
            await reader.read()


@asynccontextmanager
async def open_receiver(*answers: int) -> AsyncIterator[Receiver]:
    """Take messages for as long as the block."""
    receiver = Receiver(answers=[*answers])
    server = await asyncio.start_server(receiver.receive, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield receiver
