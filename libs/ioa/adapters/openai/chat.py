"""A language model behind any OpenAI-compatible endpoint, over plain HTTP.

Servers differ in what they take: some know no JSON schema, some want another name for the token limit, and each has a context of
its own. The adapter starts with the most that can be asked for, gives up one thing whenever a server refuses, and remembers what
worked. A refusal for length teaches how large the context is if it says so, and strictness stays; where more is wrong with a
request than that, such as texts with more tokens than is estimated, it is that request's affair: all who ask share what is
remembered, and who asks for too much again and again is to take nothing from others. The loop of retries is its own: it has to wait
as long as `Retry-After` says, to end within the caller's timeout, and to wait on an injected sleep, which together leave nothing
for a library to do.

The key is sent to the endpoint and appears nowhere else: not in errors, logs or reprs.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
from pydantic import BaseModel

from ioa.adapters.http_answers import UnfitAnswerError, as_read, create_client, pieces_of, whole_answer
from ioa.adapters.openai.completion import read_calls, read_completion
from ioa.adapters.openai.dialect import (
    AnswerFormat,
    ChatRequest,
    Dialect,
    context_in_models,
    context_in_props,
    context_told,
    is_too_long,
)
from ioa.adapters.openai.event_stream import StreamedCompletion, is_event_stream, lines_of
from ioa.adapters.openai.request_body import chat_body
from ioa.adapters.openai.settings import DEFAULT_CONTEXT_TOKENS, DEFAULT_KEY_HEADER, ModelSettings
from ioa.cancellation import fail_after
from ioa.errors import InvalidInputError, IoaError, ModelError, UnavailableError
from ioa.fair_semaphore import FairSemaphore
from ioa.json_text import parse_json
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Hear, ModelAnswer, PromptTooLongError, Tool, check_calls, current_user
from ioa.retry import pauses

__all__ = ["ModelSettings", "OpenAiChat", "open_openai_chat"]

LEAST_CONTEXT_TOKENS = 1_000
MAX_TRIES = 4
MAX_WAIT_S = 30.0
FIRST_WAIT_S = 0.5
CONNECT_TIMEOUT_S = 5.0
_LISTING_TIMEOUT_S = 15.0
_LONGEST_AWAY_S = 86_400.0
_OVERLOADED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_REFUSED = frozenset({400, 413, 415, 422, 501})
_TOO_LARGE = 413

_BYTES_A_TOKEN = 3
"""Few, so that what is estimated is rather too much than too little."""

_ANSWER_BYTES, _TOKEN_BYTES, _EVENT_BYTES = 1_000_000, 64, 1_000
"""What an answer may have, and besides for each token it may: by its letters, and by the event in which it comes by itself."""
_KEPT_OF = 16
"""Of so many questions at a time one is kept for other users than who has all the rest. It would be felt where there are few."""
_LISTED_BYTES = 4_000_000
"""What a list of models may have."""

_SECRET_CHARS = 8
"""A shorter key, such as `EMPTY` or `none`, is what servers take that want no key: no secret, and part of many texts."""


@asynccontextmanager
async def open_openai_chat(settings: ModelSettings) -> AsyncIterator[OpenAiChat]:
    """Open a pool of connections to the endpoint; nothing is sent before the first question."""
    async with create_client() as client:
        yield OpenAiChat(settings, client)


class OpenAiChat:
    """Ask a model through `/chat/completions`.

    Args:
        settings: Which model, where.
        client: The connections, by `http_answers.create_client`; whoever made it closes it.
        sleep: How to wait for a number of seconds between tries.
        rng: Spreads the waits, so that many agents do not come back at the same moment.
    """

    def __init__(
        self,
        settings: ModelSettings,
        client: httpx.AsyncClient,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - spreads waits, guards nothing
        self._dialect = Dialect() if settings.format == "auto" else Dialect(format=AnswerFormat(settings.format))
        self._where = _without_secrets(settings.base_url)
        self._context = settings.context
        self._served = 0
        """How many tokens the largest request had that was answered, with its answer, as the server counts them."""
        self._asking_context = asyncio.Lock()
        self._slots = FairSemaphore(settings.concurrency, per_key=settings.concurrency - settings.concurrency // _KEPT_OF)

    @property
    def dialect(self) -> Dialect:
        """How the server is spoken to, as far as its answers have taught."""
        return self._dialect

    async def context_tokens(self) -> int:
        """How many tokens fit into a request and its answer: by setting, else as the server says, else 128,000.

        The server is asked once, and again only if it could not be reached. What refusals tell counts from then on.
        """
        async with self._asking_context:
            told = await self._ask_context() if self._context is None else None
            self._context = self._context or told  # a refusal may have told meanwhile
        return self._context or DEFAULT_CONTEXT_TOKENS

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
        """Ask the model, retrying what a retry can help.

        Raises:
            InvalidInputError: A call of a tool has no answer.
            PromptTooLongError: It does not fit into the context.
            UnavailableError: No connection, no answer in time, or overloaded after all tries.
            ModelError: The server refuses the request or answers with something else than a completion.
        """
        check_calls(messages)
        try:
            async with self._slots.slot(current_user.get()), fail_after(limits.timeout.total_seconds()):
                is_heard = hear is not None and self._settings.stream
                return await self._ask(ChatRequest(tuple(messages), shape, limits, tuple(tools), may_call, is_heard), hear)
        except TimeoutError:
            raise UnavailableError(
                f"The language model at {self._where} gave no answer within {limits.timeout.total_seconds():g} s.",
                hint="Use a faster model or a longer timeout.",
            ) from None

    async def _ask(self, request: ChatRequest, hear: Hear | None) -> ModelAnswer:
        dialect, limits = self._dialect, request.limits
        while True:
            body = chat_body(self._settings, request, dialect)
            response = await self._send_patiently(body, limits, hear)
            if response.is_success:
                answer = read_completion(response.text, self._where, self._quoted)
                self._served = max(self._served, answer.prompt_tokens + answer.answer_tokens)
                if is_event_stream(response) and not answer.prompt_tokens:
                    dialect, answer = dialect.without_streams(), _estimated(answer, body)
                self._dialect = self._dialect.joined(dialect)  # which others may have made simpler meanwhile
                return read_calls(answer, request, dialect)
            refused = response.text if response.status_code in _REFUSED else None
            if refused is not None and (is_too_long(refused) or response.status_code == _TOO_LARGE):
                raise await self._too_long(request, response)
            simpler = None if refused is None else dialect.without(refused, request)
            if simpler is None or (simpler.format is not dialect.format and self._settings.format != "auto"):
                raise self._refusal(response)
            dialect = simpler

    async def _too_long(self, request: ChatRequest, response: httpx.Response) -> ModelError:
        """Take what the server says for its context, unless it has served more: it may quote what somebody has written.

        If that was known, or it does not say, this request alone is to be shorter: by a quarter, or by half. If that is too little,
        the refusal stands.
        """
        known, told, sent = await self.context_tokens(), context_told(response.text), _tokens_sent(request)
        most = min(known, sent)
        context = most // 2 if told is None else told if told < known else most * 3 // 4
        if context < LEAST_CONTEXT_TOKENS:
            return self._refusal(response)
        if context == told and context >= self._served:
            self._context = context
        return PromptTooLongError(f"The language model at {self._where} was sent {sent:,} tokens or more.", context=context)

    async def _ask_context(self) -> int | None:
        """Ask the server for the model's context; None if it could not be asked, the default if it does not say."""
        try:
            listed = await self._get(f"{self._settings.base_url}/models")
            told = context_in_models(listed, self._settings.model)
            return told or context_in_props(await self._get(self._beside_v1("props"))) or DEFAULT_CONTEXT_TOKENS
        except (httpx.RequestError, httpx.InvalidURL, TimeoutError):
            return None

    def _beside_v1(self, path: str) -> str:
        return f"{self._settings.base_url.removesuffix('/v1')}/{path}"

    async def _get(self, url: str) -> object:
        """Return what a server says as JSON; None if it says nothing of the kind."""
        with _as_unfit():
            async with (
                fail_after(_LISTING_TIMEOUT_S),
                self._client.stream("GET", url, headers=self._headers(), timeout=CONNECT_TIMEOUT_S) as response,
            ):
                said = await whole_answer(response, _LISTED_BYTES)
        try:
            return parse_json(said.content) if said.is_success else None
        except ValueError:
            return None

    def _headers(self) -> dict[str, str]:
        key, header = self._settings.api_key, self._settings.api_key_header
        if key is None:
            return {}
        return {header: f"{'Bearer ' if header.title() == DEFAULT_KEY_HEADER else ''}{key.get_secret_value()}"}

    async def _send_patiently(self, body: Mapping[str, Any], limits: AnswerLimits, hear: Hear | None) -> httpx.Response:
        failure, waits = "", pauses(FIRST_WAIT_S, MAX_WAIT_S, self._rng.random)
        for tried in range(1, MAX_TRIES + 1):
            wait = next(waits)
            try:
                with _as_unfit():
                    response = await self._send(body, limits, hear)
            except httpx.InvalidURL as error:
                raise InvalidInputError(f"{self._where} is no address: {error}.", hint="Check IOA_LLM_BASE_URL.") from None
            except httpx.TimeoutException:
                failure = "it did not answer in time"
            except UnfitAnswerError as error:
                failure = str(error)
            except httpx.RequestError as error:
                failure = f"the connection failed ({type(error).__name__})"
            else:
                if response.status_code not in _OVERLOADED:
                    return response
                failure = f"it answered {response.status_code}"
                wait = max(wait, _retry_after_s(response))
            if tried == MAX_TRIES or wait > MAX_WAIT_S:
                break
            await self._sleep(wait)
        raise UnavailableError(
            f"The language model at {self._where} cannot be used: {failure}.",
            hint="Check that the server runs, or try later.",
            retry_after=timedelta(seconds=wait) if wait > MAX_WAIT_S else None,
        )

    async def _send(self, body: Mapping[str, Any], limits: AnswerLimits, hear: Hear | None) -> httpx.Response:
        """Send the request and read all of the answer; one that comes piece by piece is put together, and told as it comes.

        Raises:
            httpx.RequestError: The connection failed, or the answer broke off or is unfit to be read.
        """
        most_bytes = _ANSWER_BYTES + limits.max_tokens * _TOKEN_BYTES
        async with self._client.stream(
            "POST",
            f"{self._settings.base_url}/chat/completions",
            json=body,
            headers=self._headers(),
            timeout=httpx.Timeout(limits.timeout.total_seconds(), connect=CONNECT_TIMEOUT_S),
        ) as response:
            if not (response.is_success and is_event_stream(response)):
                return await whole_answer(response, most_bytes)
            streamed = StreamedCompletion(hear, most_bytes)
            most_events = _ANSWER_BYTES + limits.max_tokens * _EVENT_BYTES
            async with aclosing(pieces_of(response, most_events)) as pieces, aclosing(lines_of(pieces, most_bytes)) as lines:
                async for line in lines:
                    streamed.read(line)
        # In ASCII: two pieces may hold the halves of one letter, which are one only where they are read together again.
        return as_read(response, json.dumps(streamed.whole()).encode())

    def _refusal(self, response: httpx.Response) -> ModelError:
        status = response.status_code
        if status in (401, 403):
            # The server's own words may quote the key.
            return ModelError(f"The language model at {self._where} refuses the key ({status}).", hint="Check IOA_LLM_API_KEY.")
        if status == 404:
            return ModelError(
                f"{self._where} knows no model {self._settings.model} or no /chat/completions.",
                hint="Check IOA_LLM_BASE_URL, which usually ends in /v1, and IOA_LLM_MODEL.",
            )
        said = self._quoted(response.text)[:300]
        return ModelError(f"The language model at {self._where} refuses the request ({status}): {said}")

    def _quoted(self, text: str) -> str:
        """Hide the key in what an error quotes of an answer. The answer itself is never changed."""
        key = self._settings.api_key.get_secret_value() if self._settings.api_key else ""
        return text.replace(key, "***") if len(key) >= _SECRET_CHARS else text


@contextmanager
def _as_unfit() -> Iterator[None]:
    """Have whatever else libraries raise of what is sent and answered be an answer that is unfit to be read.

    Who asks a model knows what to do without it, and knows no errors of libraries.
    """
    try:
        yield
    except (httpx.RequestError, httpx.InvalidURL, TimeoutError, IoaError):
        raise
    except Exception as error:
        raise UnfitAnswerError(f"what it is asked, or answers, cannot be read ({type(error).__name__})") from error


def _tokens_sent(request: ChatRequest) -> int:
    """Estimate how many tokens the messages of a request have, with what its answer may have."""
    said = sum(-(-len(message.content.encode("utf-8", "replace")) // _BYTES_A_TOKEN) for message in request.messages)
    return said + request.limits.max_tokens


def _estimated(answer: ModelAnswer, body: Mapping[str, Any]) -> ModelAnswer:
    """Estimate what an answer has cost whose server counts nothing in a stream."""
    asked, said = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"), answer.text.encode("utf-8", "replace")
    return replace(answer, prompt_tokens=len(asked) // _BYTES_A_TOKEN, answer_tokens=len(said) // _BYTES_A_TOKEN)


def _retry_after_s(response: httpx.Response) -> float:
    """Read `Retry-After` in seconds, a day at most (RFC 9110, 10.2.3); a date, which would need a clock, counts as nothing said."""
    try:
        return min(max(0.0, float(response.headers.get("retry-after", "0"))), _LONGEST_AWAY_S)
    except ValueError:
        return 0.0


def _without_secrets(url: str) -> str:
    parsed = httpx.URL(url)
    return str(parsed.copy_with(username=None, password=None, query=None))
