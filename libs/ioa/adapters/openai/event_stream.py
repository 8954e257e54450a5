"""A chat completion that comes piece by piece, as server-sent events, put together into the one that comes whole.

Lines are split at line feeds alone: other characters that end a line, such as U+2028, stand within JSON.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx

from ioa.adapters.http_answers import UnfitAnswerError
from ioa.adapters.openai.completion import MOST_CALLS
from ioa.json_text import parse_json
from ioa.ports.chat_model import Hear

_DATA, _END = b"data:", b"[DONE]"


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
        for end in ends:
            yield bytes(rest + end)
            rest.clear()
        rest += begun
        if len(rest) > most_bytes:
            raise UnfitAnswerError(f"a line of its answer has more than {most_bytes:,} bytes")
    yield bytes(rest)


class StreamedCompletion:
    """What has come so far.

    Args:
        hear: Is told its text, each time there is more of it.
        most_chars: How much it may say, with what it calls tools with.
    """

    def __init__(self, hear: Hear | None, most_chars: int) -> None:
        self._hear = hear
        self._left_chars = most_chars
        self._texts = {"content": "", "refusal": ""}
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self._is_over = False

    def read(self, line: bytes) -> None:
        """Take a line in; comments, and what is no event of a completion, say nothing.

        Raises:
            httpx.RemoteProtocolError: The server reports an error in the place of the rest, or says more than it may.
        """
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
        message = {**{name: text or None for name, text in self._texts.items()}, "tool_calls": list(self._calls.values()) or None}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    def _add(self, delta: dict[str, Any]) -> None:
        for name, text in self._texts.items():
            if isinstance(piece := delta.get(name), str) and piece:
                self._texts[name] = text + self._counted(piece)
                if self._hear is not None:
                    self._hear(self._texts[name])
        for call in _objects(delta.get("tool_calls")):
            # Some servers send each call whole, and number none of them.
            index = call.get("index")
            if not isinstance(index, int):
                index = len(self._calls) - (0 if call.get("id") else 1)
            known = self._calls.setdefault(index, {"id": None, "function": {"name": "", "arguments": ""}})
            if len(self._calls) > MOST_CALLS:
                raise UnfitAnswerError(f"it calls more than {MOST_CALLS:,} tools at once")
            if isinstance(call_id := call.get("id"), str):
                known["id"] = known["id"] or self._counted(call_id)
            for function in _objects([call.get("function")]):
                for name in ("name", "arguments"):
                    piece = function.get(name)
                    known["function"][name] += self._counted(
                        piece if isinstance(piece, str) else "" if piece is None else json.dumps(piece)
                    )

    def _counted(self, piece: str) -> str:
        self._left_chars -= len(piece)
        if self._left_chars < 0:
            raise UnfitAnswerError("it says more than it may")
        return piece


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
