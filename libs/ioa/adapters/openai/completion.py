"""Reader of chat completions: one JSON object, or server-sent events.

Servers deviate from the API in optional fields and content types. The format follows from each line; an optional field of another
type counts as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Any

import httpx

from ioa.adapters.openai.chat_request import BYTES_PER_TOKEN, ChatRequest
from ioa.concurrency import fail_after
from ioa.json_text import objects_in, parse_json
from ioa.ports.chat_model import HEARD_CHARS, Finish, ModelAnswer, ToolCall, with_own_ids
from ioa.protocol.usage import MAX_COUNT

_USAGE_TIMEOUT_S, _END_TIMEOUT_S = 2.0, 0.2
"""Seconds to wait for the usage after a finish reason, and for the end of a complete response, so that its connection is reused."""
_MAX_ANSWER_BYTES, _MAX_TOKEN_BYTES = 1_000_000, 1_000
"""Maximum bytes of a response: a base, and the size of an event for each token."""
_MAX_QUOTED_BYTES = 200
_EVENT_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:")
_THOUGHT = re.compile(r"<think>.*?</think>|\A\s*<think>.*", re.DOTALL)
_END_OF_THOUGHT = "</think>"
_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tools",
    "content_filter": "filter",
}


class UnansweredError(Exception):
    """There is no complete answer.

    Attributes:
        status: The HTTP status, or the code of an error with status 200; 0 if the connection or the answer broke off.
        retry_after: Seconds that the server requests before a retry.
    """

    def __init__(self, reason: str, status: int = 0, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after = retry_after


class CompletionReader:
    """Reads the response to one request."""

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._bytes_left = _MAX_ANSWER_BYTES + request.limits.max_tokens * _MAX_TOKEN_BYTES
        self._timeout: float | None = None
        """Seconds to wait for the next bytes; None until the answer is complete."""
        self._is_stream = False
        self._rest = bytearray()
        """The unread bytes: of a stream the last line, otherwise the whole response."""
        self._text: list[str] = []
        self._heard = ""
        self._calls: list[dict[str, Any]] = []
        self._finish: object = None
        self._usage: object = None

    async def read(self, pieces: AsyncIterator[bytes]) -> ModelAnswer:
        """Read until the answer is complete, even if the connection stays open or breaks after it.

        Raises:
            UnansweredError: The response contains no answer or an error, is too long, or broke off.
            httpx.HTTPError: The connection broke before the answer was complete.
        """
        piece: bytes | None = b""
        while piece is not None:
            try:
                async with fail_after(self._timeout):
                    piece = await anext(pieces, None)
            except (TimeoutError, httpx.HTTPError):
                if self._timeout is None:
                    raise
                piece = None
            self._take(b"\n" if piece is None else piece)
        if self._timeout is not None:
            return self._answer()
        if self._is_stream:
            raise UnansweredError("the answer broke off")
        raise UnansweredError(self._rest[:_MAX_QUOTED_BYTES].strip().decode("utf-8", "replace"), httpx.codes.OK)

    def _take(self, piece: bytes) -> None:
        self._bytes_left -= len(piece)
        if self._bytes_left < 0:
            raise UnansweredError("its answer is too long")
        self._rest += piece
        self._is_stream = self._is_stream or self._rest[:20].lstrip().startswith(_EVENT_FIELDS)
        if self._is_stream:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._take_event(bytes(line[5:].strip()))
        elif piece.rstrip().endswith(b"}"):
            with suppress(ValueError):
                if self._take_part(parse_json(self._rest.decode("utf-8", "replace")), "message"):
                    self._timeout = _END_TIMEOUT_S

    def _take_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._timeout = _END_TIMEOUT_S
            return
        try:
            self._take_part(parse_json(data), "delta")
        except ValueError:
            raise UnansweredError("a part of its answer is not JSON") from None
        if self._finish:
            self._timeout = _END_TIMEOUT_S if self._usage else _USAGE_TIMEOUT_S

    def _take_part(self, response: object, part: str) -> bool:
        """Add a whole response or an event of a stream; return whether it contains a message, which is named `part`."""
        response = _object(response)
        if error := response.get("error"):
            code, reason = (error.get("code"), error.get("message")) if isinstance(error, dict) else (0, error)
            raise UnansweredError(str(reason), code if isinstance(code, int) and 400 <= code < 600 else 0)
        [choice, *_] = _objects(response.get("choices")) or [{}]
        self._finish = choice.get("finish_reason") or self._finish
        self._usage = response.get("usage") or self._usage
        message = choice.get(part)
        self._take_message(_object(message))
        return isinstance(message, dict)

    def _take_message(self, message: dict[str, Any]) -> None:
        """Add a whole message, or a part of a streamed one."""
        if text := _text(message.get("content")) or _text(message.get("refusal")):
            self._text.append(text)
            self._report(text)
        for one in _objects(message.get("tool_calls")):
            call_id, index, function = _string(one.get("id")), one.get("index"), _object(one.get("function"))
            # A different id starts another call, also with the same index.
            same = [call for call in self._calls if call_id in ("", call["id"]) and index in (None, call["index"])]
            if not same or not self._is_stream:
                same = [{"index": index, "id": call_id, "name": "", "arguments": ""}]
                self._calls += same
            call, arguments = same[-1], function.get("arguments")
            if (name := _string(function.get("name"))) != call["name"]:  # some servers repeat the name in each event
                call["name"] += name
            call["arguments"] += "" if arguments is None else _json(arguments)

    def _report(self, text: str) -> None:
        """Call `hear` with the text after the model's thoughts."""
        if self._request.hear is None or not self._is_stream:
            return
        self._heard = (self._heard + text).rpartition(_END_OF_THOUGHT)[2].lstrip()
        if self._heard and not self._heard.startswith("<think"[: len(self._heard)]):
            self._heard = self._heard[-HEARD_CHARS:]
            self._request.hear(self._heard)

    def _answer(self) -> ModelAnswer:
        request, usage = self._request, _object(self._usage)
        text, finish = without_thoughts("".join(self._text)), _FINISHES.get(_string(self._finish), "other")
        names = {tool.name for tool in request.tools}
        calls = [
            ToolCall(call["id"], call["name"], _well_formed(call["arguments"]) or "{}") for call in self._calls if call["name"]
        ]
        if request.may_call and not calls and finish != "length" and (calls := _calls_in_text(text, names)):
            text = ""
        if calls and finish == "stop":
            finish = "tools"
        prompt, answer = (_object(usage.get(f"{name}_tokens_details")) for name in ("prompt", "completion"))
        prompt_tokens, answer_tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if not prompt_tokens:  # estimated, so that budgets hold
            prompt_tokens = request.estimated_tokens
            answer_tokens = answer_tokens or len(text.encode()) // BYTES_PER_TOKEN
        return with_own_ids(
            ModelAnswer(
                text,
                finish,
                prompt_tokens,
                answer_tokens,
                cached_tokens=_count(prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))),
                reasoning_tokens=_count(answer.get("reasoning_tokens")),
                tool_calls=tuple(calls),
            ),
            request.messages,
        )


def without_thoughts(text: str) -> str:
    """Remove the model's thoughts: `<think>…</think>`, or all before a closing tag whose opening tag is in the chat template."""
    text = _well_formed(text)
    remaining = _THOUGHT.sub("", text)
    if not remaining.lstrip().startswith("{"):
        remaining = remaining.rpartition(_END_OF_THOUGHT)[2]
    return text if remaining == text else remaining.lstrip()


def _calls_in_text(text: str, names: Collection[str]) -> list[ToolCall]:
    """Return the calls that a model wrote as JSON: the name of a tool with `arguments` or `parameters`."""
    calls: list[ToolCall] = []
    for found in objects_in(text) if names else ():
        name = _string(found.get("tool")) or _string(found.get("name"))
        arguments = found.get("arguments", found.get("parameters"))
        if name in names and arguments is not None:
            calls.append(ToolCall("", name, _json(arguments)))
    return calls


def _count(value: object) -> int:
    """Return a number of tokens within the range of a usage; 0 if it is not a number."""
    return int(min(max(0, value), MAX_COUNT)) if isinstance(value, int | float) and value == value else 0


def _text(content: object) -> str:
    """Return the text of a content: a string, or the text parts of a list."""
    if isinstance(content, list):
        return "".join(_string(part.get("text")) for part in _objects(content) if part.get("type", "text") == "text")
    return _string(content)


def _well_formed(text: str) -> str:
    """Join surrogates of two events into one character, and replace single surrogates."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
