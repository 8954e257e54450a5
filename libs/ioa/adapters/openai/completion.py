"""Reader of chat completions: one JSON object, or server-sent events.

Servers deviate from the API in optional fields and content types. The format follows from the first byte of the response; an
optional field of another type counts as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Any

import httpx

from ioa.adapters.openai.request_body import ChatRequest
from ioa.cancellation import fail_after
from ioa.json_text import objects_in, parse_json
from ioa.ports.chat_model import HEARD_CHARS, Finish, Hear, ModelAnswer, ToolCall, with_own_ids
from ioa.protocol.usage import MAX_COUNT

_USAGE_TIMEOUT_S, _END_TIMEOUT_S = 2.0, 0.2
"""Seconds to wait for the usage after a finish reason, and for the end of a complete response, so that its connection is reused."""
BYTES_PER_TOKEN = 3
_THOUGHT = re.compile(r"<think>.*?</think>|\A\s*<think>.*", re.DOTALL)
_END_OF_THOUGHT = "</think>"
_EVENT_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:")
_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
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
    """Reads one response.

    Args:
        hear: Called with the end of the text each time it grows.
        max_bytes: Maximum length of the response.
    """

    def __init__(self, hear: Hear | None, max_bytes: int) -> None:
        self.start = b""
        """The first bytes, for errors."""
        self._hear = hear
        self._bytes_left = max_bytes
        self._rest = bytearray()
        self._whole: Any = None
        self._timeout: float | None = None
        """Seconds to wait for the next bytes; None until the answer has its end."""
        self._text: list[str] = []
        self._heard = ""
        self._calls: list[dict[str, Any]] = []
        self._finish: Any = None
        self._usage: Any = None

    async def read(self, pieces: AsyncIterator[bytes]) -> Any:
        """Read until the answer is complete, even if the connection stays open or breaks after it.

        Returns:
            The completion as one JSON object; None if the response contains none.

        Raises:
            UnansweredError: The response is longer than `max_bytes`, an event is not JSON, or a stream ended too early.
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
        if self._whole is not None or not self._is_stream:
            return self._whole
        if self._timeout is None:
            raise UnansweredError("the answer broke off")
        message = {"content": "".join(self._text), "tool_calls": self._calls}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    @property
    def _is_stream(self) -> bool:
        return self.start.lstrip(b"\xef\xbb\xbf \r\n").startswith(_EVENT_FIELDS)

    def _take(self, piece: bytes) -> None:
        self._bytes_left -= len(piece)
        if self._bytes_left < 0:
            raise UnansweredError("its answer is too long")
        self.start = (self.start + piece)[:200] if len(self.start) < 200 else self.start
        self._rest += piece
        if self._is_stream:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._take_event(bytes(line[5:].strip()))
        elif piece.rstrip().endswith(b"}"):
            with suppress(ValueError):
                self._whole = parse_json(self._rest.decode("utf-8-sig", "replace"))
                self._timeout = _END_TIMEOUT_S

    def _take_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._timeout = _END_TIMEOUT_S
            return
        try:
            chunk = parse_json(data)
        except ValueError:
            raise UnansweredError("a part of its answer is not JSON") from None
        if not isinstance(chunk, dict):
            return
        self._usage = chunk.get("usage") or self._usage
        for choice in _objects(chunk.get("choices"))[:1]:
            self._finish = choice.get("finish_reason") or self._finish
            self._take_delta(_object(choice.get("delta")))
        if self._finish:
            self._timeout = _END_TIMEOUT_S if self._usage else _USAGE_TIMEOUT_S
        if chunk.get("error"):
            self._whole, self._timeout = chunk, _END_TIMEOUT_S

    def _take_delta(self, delta: dict[str, Any]) -> None:
        if piece := _text(delta.get("content")) or _text(delta.get("refusal")):
            self._text.append(piece)
            self._report(piece)
        for one in _calls(delta):
            call_id, index = _string(one.get("id")), one.get("index")
            # A different id starts another call, also with the same index.
            same = [call for call in self._calls if call_id in ("", call["id"]) and index in (None, call["index"])]
            if not same:
                same = [{"index": index, "id": call_id, "function": {"name": "", "arguments": ""}}]
                self._calls += same
            merged, function = same[-1]["function"], one["function"]
            if (name := _string(function.get("name"))) != merged["name"]:  # some servers repeat the name in each event
                merged["name"] += name
            if (arguments := function.get("arguments")) is not None:
                merged["arguments"] += _json(arguments)

    def _report(self, piece: str) -> None:
        """Call `hear` with the text after the model's thoughts."""
        if self._hear is None:
            return
        self._heard = (self._heard + piece).rpartition(_END_OF_THOUGHT)[2].lstrip()
        if self._heard and not self._heard.startswith("<think"[: len(self._heard)]):
            self._heard = self._heard[-HEARD_CHARS:]
            self._hear(self._heard)


def read_completion(completion: Any, request: ChatRequest) -> ModelAnswer | None:
    """Read the answer; None if this is not a chat completion.

    Raises:
        UnansweredError: It is an error, which a server returns with status 200.
    """
    completion = _object(completion)
    [choice, *_] = _objects(completion.get("choices")) or [{}]
    message, reason = choice.get("message"), _string(choice.get("finish_reason"))
    if not isinstance(message, dict):
        if not (told := completion.get("error")):
            return None
        told = told if isinstance(told, dict) else {"message": told}
        code = told.get("code")
        raise UnansweredError(str(told.get("message")), code if isinstance(code, int) and 400 <= code < 600 else 0)
    text = without_thoughts(_text(message.get("content")) or _text(message.get("refusal")))
    finish = _FINISHES.get(reason, "other")
    names = {tool.name for tool in request.tools}
    calls = [
        ToolCall(_string(one.get("id")), _offered_name(name, names), _well_formed(_json(one["function"].get("arguments"))))
        for one in _calls(message)
        if (name := _string(one["function"].get("name")))
    ]
    if request.may_call and not calls and finish != "length" and (calls := _calls_in_text(text, names)):
        text = ""
    if calls and finish == "stop":
        finish = "tools"
    usage = _usage(_object(completion.get("usage")))
    if not usage["prompt_tokens"]:  # estimated, so that budgets hold
        asked = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        usage |= {"prompt_tokens": asked // BYTES_PER_TOKEN}
        usage["answer_tokens"] = usage["answer_tokens"] or len(text.encode()) // BYTES_PER_TOKEN
    return with_own_ids(ModelAnswer(text, finish, tool_calls=tuple(calls), **usage), request.messages)


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
        name = _offered_name(_string(found.get("tool")) or _string(found.get("name")), names)
        arguments = found.get("arguments", found.get("parameters"))
        if name in names and arguments is not None:
            calls.append(ToolCall("", name, _json(arguments)))
    return calls


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    old = [{"function": one} for one in _objects([message.get("function_call")])]  # the API before tools
    return [{**one, "function": _object(one.get("function"))} for one in _objects(message.get("tool_calls")) or old]


def _offered_name(name: str, names: Collection[str]) -> str:
    """Return the tool's name without a namespace, such as `functions.`, that the model added."""
    short = name.rpartition(".")[2]
    return short if name not in names and short in names else name


def _usage(usage: dict[str, Any]) -> dict[str, int]:
    prompt, answer = (_object(usage.get(f"{name}_tokens_details")) for name in ("prompt", "completion"))
    return {
        "prompt_tokens": _count(usage.get("prompt_tokens")),
        "answer_tokens": _count(usage.get("completion_tokens")),
        "cached_tokens": _count(prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))),
        "reasoning_tokens": _count(answer.get("reasoning_tokens")),
    }


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
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
