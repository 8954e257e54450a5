"""Client of a language model at an OpenAI-compatible endpoint.

Fields that a server rejects are omitted from then on. The key is sent to the endpoint only; no error, log or repr contains it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from pydantic import BaseModel

from ioa.adapters.http_answers import create_client, whole_answer
from ioa.adapters.openai.chat_request import ChatRequest, chat_body, rejected_fields
from ioa.adapters.openai.completion import CompletionReader, UnansweredError
from ioa.adapters.openai.settings import DEFAULT_CONTEXT_TOKENS, ModelSettings
from ioa.concurrency import fail_after
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.fair_semaphore import FairSemaphore
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Hear, ModelAnswer, PromptTooLongError, Tool, check_calls, current_user
from ioa.retry import pauses

__all__ = ["ModelSettings", "OpenAiChat", "open_openai_chat"]

MAX_ATTEMPTS = 4
MAX_WAIT_S = 30.0
FIRST_WAIT_S = 0.5
CONNECT_TIMEOUT_S = 5.0
MAX_CONCURRENT = 16
"""Requests of a process that run at once; users take turns, and one request is always free for another user."""
_MIN_CONTEXT_TOKENS = 1_000
_MAX_RETRY_AFTER_S = 86_400.0
_TRANSIENT = frozenset({0, 408, 409, 425, 429, 500, 502, 503, 504, 529})
_REJECTED = frozenset({400, 413, 415, 422, 501})
_TOO_LONG = re.compile(
    r"n_ctx|max_model_len|context[ _](?:length|size|window|limit)|prompt (?:is )?too long|too many (?:input )?tokens"
    r"|input token count|max_new_tokens",
    re.IGNORECASE,
)
"""Errors for long requests of llama.cpp, vLLM, SGLang, OpenAI, Anthropic, Gemini, TGI and Mistral."""
_STATED_CONTEXT = re.compile(r"(?:n_ctx|max_model_len|context (?:length|size|window))\D{0,12}(\d[\d,]{2,})", re.IGNORECASE)
_MIN_SECRET_CHARS = 8
"""A shorter key, such as `EMPTY`, is a placeholder, and part of many texts."""
_MAX_QUOTED_CHARS = 300


@asynccontextmanager
async def open_openai_chat(settings: ModelSettings) -> AsyncIterator[OpenAiChat]:
    """Open a connection pool; nothing is sent before the first request."""
    async with create_client() as client:
        yield OpenAiChat(settings, client)


class OpenAiChat:
    """A chat model at `/chat/completions`.

    Args:
        settings: The model and its address.
        client: The connection pool; the caller closes it.
        sleep: Waits for a number of seconds between attempts.
        jitter: Returns a number between 0 and 1 that spreads the waits of many agents.
    """

    def __init__(
        self,
        settings: ModelSettings,
        client: httpx.AsyncClient,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._client = client
        self._sleep = sleep
        self._jitter = jitter
        self._key = settings.api_key.get_secret_value() if settings.api_key else ""
        self._server = f"The language model at {httpx.URL(settings.base_url).copy_with(username=None, password=None, query=None)}"
        self._context = settings.context or DEFAULT_CONTEXT_TOKENS
        self._slots = FairSemaphore(MAX_CONCURRENT, per_key=MAX_CONCURRENT - 1)
        self.omitted = frozenset[str]()
        """Request fields that the server rejects."""

    async def context_tokens(self) -> int:
        """Return the context of the settings, or a smaller one if an error of the server stated it."""
        return self._context

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        shape: type[BaseModel] | None,
        limits: AnswerLimits,
        tools: Sequence[Tool] = (),
        *,
        may_call: bool = True,
        hear: Hear | None = None,
    ) -> ModelAnswer:
        """Send a request, at most four times; see `ChatModel.answer`."""
        check_calls(messages)
        request = ChatRequest(tuple(messages), shape, limits, tuple(tools), may_call, hear)
        seconds = limits.timeout.total_seconds()
        try:
            async with self._slots.slot(current_user.get()), fail_after(seconds):
                return await self._ask(request)
        except TimeoutError:
            raise UnavailableError(
                f"{self._server} gave no answer within {seconds:g} s.", hint="Use a faster model or a longer timeout."
            ) from None

    async def _ask(self, request: ChatRequest) -> ModelAnswer:
        omitted, waits, attempts = self.omitted, pauses(FIRST_WAIT_S, MAX_WAIT_S, self._jitter), 0
        while True:
            body = chat_body(self._settings, request, omitted)
            try:
                answer = await self._send(body, request)
            except UnansweredError as error:
                failure = error
            else:
                self.omitted |= omitted
                return answer
            # Outside of the handler: the failure can quote the key.
            if failure.status in _TRANSIENT:
                attempts, wait = attempts + 1, max(next(waits), failure.retry_after)
                if attempts == MAX_ATTEMPTS or wait > MAX_WAIT_S:
                    raise self._unavailable(failure, wait)
                await self._sleep(wait)
            elif failure.status not in _REJECTED:
                raise self._error(failure)
            elif failure.status == httpx.codes.REQUEST_ENTITY_TOO_LARGE or _TOO_LONG.search(str(failure)):
                raise self._too_long(failure, request)
            elif rejected := rejected_fields(str(failure), body) - omitted:
                omitted |= rejected
            else:
                raise self._error(failure)

    async def _send(self, body: Mapping[str, Any], request: ChatRequest) -> ModelAnswer:
        """Send the request once.

        Raises:
            UnansweredError: There is no complete answer, the server rejects the request, or its response is not a chat completion.
        """
        try:
            async with self._client.stream(
                "POST",
                f"{self._settings.base_url}/chat/completions",
                content=json.dumps(body),
                headers={"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
                timeout=httpx.Timeout(request.limits.timeout.total_seconds(), connect=CONNECT_TIMEOUT_S),
            ) as response:
                if response.is_success:
                    return await CompletionReader(request).read(response.aiter_bytes())
                reason = (await whole_answer(response, 0)).text
                raise UnansweredError(reason, response.status_code, retry_after_s(response.headers))
        except httpx.TimeoutException:
            raise UnansweredError("it did not answer in time") from None
        except (httpx.HTTPError, ValueError) as error:
            raise UnansweredError(f"the connection failed ({type(error).__name__})") from None

    def _unavailable(self, failure: UnansweredError, wait: float) -> UnavailableError:
        status = f"status {failure.status}, " if failure.status else ""
        return UnavailableError(
            f"{self._server} cannot be used: {status}{self._quoted(failure)}.",
            hint="Check that the server runs, or try later.",
            retry_after=timedelta(seconds=wait) if wait > MAX_WAIT_S else None,
        )

    def _error(self, failure: UnansweredError) -> IoaError:
        hint = ""
        match failure.status:
            case 401 | 403 as status:  # the server's own text can quote a part of the key
                problem, hint = f"refuses the key ({status}).", "Check IOA_LLM_API_KEY."
            case 404:
                problem = f"has no model {self._settings.model} or no /chat/completions."
                hint = "Check IOA_LLM_BASE_URL, which usually ends in /v1, and IOA_LLM_MODEL."
            case httpx.codes.OK:
                problem = f"returned no chat completion, but {self._quoted(failure)!r}."
                hint = "Check IOA_LLM_BASE_URL."
            case status:
                problem = f"rejects the request ({status}): {self._quoted(failure)}"
        return ModelError(f"{self._server} {problem}", hint=hint)

    def _too_long(self, failure: UnansweredError, request: ChatRequest) -> ModelError:
        """Remember the context that the error states. If it states none or the known one, this request must be half as long."""
        sent = request.estimated_tokens + request.limits.max_tokens
        stated = [int(number.replace(",", "")) for number in _STATED_CONTEXT.findall(str(failure))]
        context = min([*stated, self._context])
        if context == self._context:
            context = min(sent, context) // 2
        else:
            self._context = max(context, _MIN_CONTEXT_TOKENS)
        message = f"{self._server} was sent about {sent:,} tokens, which exceeds its context."
        if context < _MIN_CONTEXT_TOKENS:
            return ModelError(message, hint="Use a model with a larger context.")
        return PromptTooLongError(message, context=context)

    def _quoted(self, failure: UnansweredError) -> str:
        """Return the start of a failure's text without the key."""
        text = str(failure)
        return (text.replace(self._key, "***") if len(self._key) >= _MIN_SECRET_CHARS else text)[:_MAX_QUOTED_CHARS]


def retry_after_s(headers: httpx.Headers) -> float:
    """Return the requested wait in seconds, at most one day: `retry-after-ms`, or `Retry-After` (RFC 9110, 10.2.3)."""
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        if milliseconds.isdigit():
            seconds = int(milliseconds) / 1_000
        elif value.replace(".", "", 1).isdigit():
            seconds = float(value)
        else:
            seconds = (parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return min(max(0.0, seconds), _MAX_RETRY_AFTER_S)
