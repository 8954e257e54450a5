"""A language model behind any OpenAI-compatible endpoint, over plain HTTP.

Servers differ in what they take: some know no JSON schema, some refuse length limits in one, some want another name for the
token limit. The adapter starts with the most that can be asked for, gives up one thing whenever a server refuses, and
remembers what worked. The loop of retries is its own: it has to wait as long as `Retry-After` says, to end within the
caller's timeout, and to wait on an injected sleep, which together leave nothing for a library to do.

The key is sent to the endpoint and appears nowhere else: not in errors, logs or reprs.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import BaseModel, SecretStr

from ioa.adapters.openai.dialect import Dialect, chat_body, read_completion
from ioa.errors import InvalidInputError, ModelError, UnavailableError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ModelAnswer

DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_TRIES = 4
MAX_WAIT_S = 30.0
FIRST_WAIT_S = 0.5
CONNECT_TIMEOUT_S = 5.0
_OVERLOADED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_REFUSED = frozenset({400, 415, 422, 501})

_SECRET_CHARS = 8
"""A shorter key, such as `EMPTY` or `none`, is what servers take that want no key: no secret, and part of many texts."""


@dataclass(frozen=True)
class ModelSettings:
    """Where the model is and what it is called."""

    base_url: str
    model: str
    api_key: SecretStr | None = None

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> ModelSettings | None:
        """Read `IOA_LLM_*`, then the usual `OPENAI_*`; None if no model is asked for.

        A model is asked for by naming it: a key or an address alone often stands in an environment for other programs. A key
        of `OPENAI_API_KEY` is never sent to the address in `IOA_LLM_BASE_URL`, since it may belong to somebody else.

        Raises:
            InvalidInputError: `IOA_LLM_BASE_URL` stands without a model, or the address is none.
        """
        own_url = env.get("IOA_LLM_BASE_URL", "").strip()
        model = env.get("IOA_LLM_MODEL", "").strip() or env.get("OPENAI_MODEL", "").strip()
        if not model:
            if own_url:
                raise InvalidInputError("IOA_LLM_BASE_URL is set, but no model is named.", hint="Set IOA_LLM_MODEL.")
            return None
        url = own_url or env.get("OPENAI_BASE_URL", "").strip() or DEFAULT_BASE_URL
        key = env.get("IOA_LLM_API_KEY", "").strip() or ("" if own_url else env.get("OPENAI_API_KEY", "").strip())
        _check_url(url)
        return cls(base_url=url.rstrip("/"), model=model, api_key=SecretStr(key) if key else None)


@asynccontextmanager
async def open_openai_chat(settings: ModelSettings) -> AsyncIterator[OpenAiChat]:
    """Open a pool of connections to the endpoint; nothing is sent before the first question."""
    async with httpx.AsyncClient() as client:
        yield OpenAiChat(settings, client)


class OpenAiChat:
    """Ask a model through `/chat/completions`.

    Args:
        settings: Which model, where.
        client: The connections; whoever made it closes it.
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
        self._dialect = Dialect()
        self._where = _without_secrets(settings.base_url)

    @property
    def dialect(self) -> Dialect:
        """How the server is spoken to, as far as its answers have taught."""
        return self._dialect

    async def answer(self, messages: Sequence[ChatMessage], shape: type[BaseModel], limits: AnswerLimits) -> ModelAnswer:
        """Ask the model, retrying what a retry can help.

        Raises:
            UnavailableError: No connection, no answer in time, or overloaded after all tries.
            ModelError: The server refuses the request or answers with something else than a completion.
        """
        try:
            async with asyncio.timeout(limits.timeout.total_seconds()):
                return await self._ask(messages, shape, limits)
        except TimeoutError:
            raise UnavailableError(
                f"The language model at {self._where} gave no answer within {limits.timeout.total_seconds():g} s.",
                hint="Use a faster model or a longer timeout.",
            ) from None

    async def _ask(self, messages: Sequence[ChatMessage], shape: type[BaseModel], limits: AnswerLimits) -> ModelAnswer:
        dialect = self._dialect
        while True:
            body = chat_body(self._settings.model, messages, shape, limits, dialect)
            response = await self._send_patiently(body, limits)
            if response.is_success:
                self._dialect = dialect
                return read_completion(response.text, self._where, self._quoted)
            simpler = dialect.without(response.text) if response.status_code in _REFUSED else None
            if simpler is None:
                raise self._refusal(response)
            dialect = simpler

    async def _send_patiently(self, body: Mapping[str, Any], limits: AnswerLimits) -> httpx.Response:
        failure = ""
        for tried in range(1, MAX_TRIES + 1):
            wait = FIRST_WAIT_S * 2 ** (tried - 1) * self._rng.uniform(0.5, 1.5)
            try:
                response = await self._send(body, limits)
            except httpx.InvalidURL as error:
                raise InvalidInputError(f"{self._where} is no address: {error}.", hint="Check IOA_LLM_BASE_URL.") from None
            except httpx.TimeoutException:
                failure = "it did not answer in time"
            except httpx.TransportError as error:
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
            f"The language model at {self._where} cannot be used: {failure}.", hint="Check that the server runs, or try later."
        )

    async def _send(self, body: Mapping[str, Any], limits: AnswerLimits) -> httpx.Response:
        key = self._settings.api_key
        return await self._client.post(
            f"{self._settings.base_url}/chat/completions",
            json=body,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            timeout=httpx.Timeout(limits.timeout.total_seconds(), connect=CONNECT_TIMEOUT_S),
        )

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


def _retry_after_s(response: httpx.Response) -> float:
    """Read `Retry-After` in seconds (RFC 9110, 10.2.3); a date, which would need a clock, counts as nothing said."""
    try:
        return max(0.0, float(response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def _check_url(url: str) -> None:
    hint = "Give an address such as http://localhost:8080/v1."
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise InvalidInputError("The address of the language model is no URL.", hint=hint) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInputError("The address of the language model is no http or https URL.", hint=hint)


def _without_secrets(url: str) -> str:
    parsed = httpx.URL(url)
    return str(parsed.copy_with(username=None, password=None, query=None))
