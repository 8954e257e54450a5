"""A chat completion that comes piece by piece, as server-sent events, put together into the one that comes whole.

Lines are split at line feeds alone: other characters that end a line, such as U+2028, stand within JSON. Pieces are kept as they
come and joined once: to join each to all before it would copy megabytes for a letter.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from ioa.adapters.http_answers import UnfitAnswerError
from ioa.adapters.openai.completion import MOST_CALLS
from ioa.json_text import parse_json
from ioa.ports.chat_model import HEARD_CHARS, Hear

_DATA, _END = b"data:", b"[DONE]"
_ENTRY_CHARS = 10
"""As how many characters a line counts, and what a line says of one call, besides its text: reading it costs as much, even if it
is empty."""
_LINES_AT_ONCE = 64
"""Behind how many lines that came together others have their turns."""


def is_event_stream(response: httpx.Response) -> bool:
    """Whether the answer comes as events; a server that knows no streams sends it whole."""
    kind: str = response.headers.get("content-type", "")
    return kind.startswith("text/event-stream")


async def lines_of(pieces: AsyncIterator[bytes], most_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield the lines of an answer as they come.

    Raises:
        UnfitAnswerError: One has more bytes than that.
    """
    rest = bytearray()
    async for piece in pieces:
        *ends, begun = piece.split(b"\n")
        for number, end in enumerate(ends, 1):
            yield bytes(rest + end)
            rest.clear()
            if number % _LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
        rest += begun
        if len(rest) > most_bytes:
            raise UnfitAnswerError(f"a line of its answer has more than {most_bytes:,} bytes")
    yield bytes(rest)


@dataclass
class _Text:
    """A text that comes in pieces, and its end as far as it has come."""

    pieces: list[str] = field(default_factory=list)
    end: str = ""

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.end = (self.end + piece)[-HEARD_CHARS:]


@dataclass
class _Call:
    """A call of a tool, of which each part comes in pieces."""

    call_id: str | None = None
    name: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        return {"id": self.call_id, "function": {"name": "".join(self.name), "arguments": "".join(self.arguments)}}


class StreamedCompletion:
    """What has come so far.

    Args:
        hear: Is told the end of its text, each time there is more of it.
        most_chars: How much it may say, with what it calls tools with. Lines, and what they say of calls, count as some more.
    """

    def __init__(self, hear: Hear | None, most_chars: int) -> None:
        self._hear = hear
        self._left_chars = most_chars
        self._texts = {"content": _Text(), "refusal": _Text()}
        self._calls: dict[int, _Call] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self._is_over = False

    def read(self, line: bytes) -> None:
        """Take a line in; comments, and what is no event of a completion, say nothing.

        Raises:
            httpx.RemoteProtocolError: The server reports an error in the place of the rest, or says more than it may.
        """
        self._count(_ENTRY_CHARS)
        if not line.startswith(_DATA):
            return
        data = line.removeprefix(_DATA).strip()
        if data == _END:
            self._is_over = True
            return
        try:
            chunk = parse_json(data)
        except ValueError:
            return
        if not isinstance(chunk, dict):
            return
        if chunk.get("error"):
            raise httpx.RemoteProtocolError("the server reports an error within its answer")
        self._usage = chunk.get("usage") or self._usage
        for choice in _objects(chunk.get("choices"))[:1]:
            self._finish = choice.get("finish_reason") or self._finish
            for delta in _objects([choice.get("delta")]):
                self._add(delta)

    def whole(self) -> dict[str, Any]:
        """Return the completion as it would have come whole.

        Raises:
            httpx.RemoteProtocolError: It broke off.
        """
        if not (self._is_over or self._finish):
            raise httpx.RemoteProtocolError("the answer broke off")
        message = {
            **{name: "".join(text.pieces) or None for name, text in self._texts.items()},
            "tool_calls": [call.whole() for call in self._calls.values()] or None,
        }
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    def _add(self, delta: dict[str, Any]) -> None:
        for name, text in self._texts.items():
            if isinstance(piece := delta.get(name), str) and piece:
                text.add(self._counted(piece))
                if self._hear is not None:
                    self._hear(text.end)
        calls = _objects(delta.get("tool_calls"))
        _check_number(len(calls))
        for call in calls:
            self._add_call(call)

    def _add_call(self, told: dict[str, Any]) -> None:
        self._count(_ENTRY_CHARS)
        # Some servers send each call whole, and number none of them.
        index = told.get("index")
        if not isinstance(index, int):
            index = len(self._calls) - (0 if told.get("id") else 1)
        call = self._calls.setdefault(index, _Call())
        _check_number(len(self._calls))
        if isinstance(call_id := told.get("id"), str):
            call.call_id = call.call_id or self._counted(call_id)
        for function in _objects([told.get("function")]):
            for pieces, piece in ((call.name, function.get("name")), (call.arguments, function.get("arguments"))):
                if piece is not None:
                    pieces.append(self._counted(piece if isinstance(piece, str) else json.dumps(piece)))

    def _counted(self, piece: str) -> str:
        self._count(len(piece))
        return piece

    def _count(self, chars: int) -> None:
        self._left_chars -= chars
        if self._left_chars < 0:
            raise UnfitAnswerError("it says more than it may")


def _check_number(calls: int) -> None:
    if calls > MOST_CALLS:
        raise UnfitAnswerError(f"it calls more than {MOST_CALLS:,} tools at once")


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
