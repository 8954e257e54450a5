"""Which language model is asked, and what that may take, by the variables `IOA_LLM_…`.

They are read once, when a process starts. An error names the variable; a key appears in no error, log or repr.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import httpx
from pydantic import BeforeValidator, Field, SecretStr, ValidationError

from ioa.errors import InvalidInputError
from ioa.ports.chat_model import Effort
from ioa.protocol.codec import problems_of
from ioa.protocol.model import Model, Time, as_seconds

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_CONTEXT_TOKENS = 128_000
DEFAULT_KEY_HEADER = "Authorization"

_HINT = "Give an address such as http://localhost:8080/v1."

Format = Literal["auto", "json_schema", "json_object", "plain"]
"""How the shape of an answer is asked for; `auto` begins with the strictest way and steps down where a server refuses it."""


def _object(written: object) -> object:
    try:
        return json.loads(written) if isinstance(written, str) else written
    except ValueError:
        raise ValueError("it is no JSON") from None


Seconds = Annotated[timedelta, BeforeValidator(as_seconds), Field(gt=timedelta(0))]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]


class ModelVariables(Model):
    """What the environment says of a language model; a field is read off the variable `IOA_` and its name."""

    llm_base_url: str = Field(default="", description="where the language model is; usually ends in `/v1` (else `OPENAI_BASE_URL`)")
    llm_model: str = Field(default="", description="which model (else `OPENAI_MODEL`); none: agents are led by rules")
    llm_api_key: SecretStr = Field(
        default=SecretStr(""), description="its key (else `OPENAI_API_KEY`, which is not sent to `IOA_LLM_BASE_URL`)"
    )
    llm_api_key_file: Path | None = Field(default=None, description="a file that holds the key instead")
    llm_api_key_header: HeaderName = Field(
        default=DEFAULT_KEY_HEADER, description="the header that carries the key; any other carries it without `Bearer`"
    )
    llm_context: int | None = Field(
        default=None, ge=1_000, description="tokens that fit into a request with its answer; else the server is asked, else 128,000"
    )
    llm_max_prompt: int = Field(
        default=100_000,
        ge=500,
        description="the most tokens of a prompt, however large the context; what its model READs comes on top",
    )
    llm_max_answer: int = Field(default=16_000, ge=16, description="the most tokens of an answer, its reasoning included")
    llm_timeout: Seconds = Field(default=timedelta(seconds=120), description="for one answer, with the retries of its transport")
    llm_patience: Seconds = Field(
        default=timedelta(seconds=600),
        description="for one decision with its repairs, and for a model that is away; the agent keeps the floor meanwhile",
    )
    llm_fallback: Literal["none", "rules"] = Field(
        default="none", description="what decides where the model does not: nobody, so that the floor is passed on, or `rules`"
    )
    llm_temperature: float = Field(default=0.2, ge=0, le=2, description="how freely the model chooses, where it takes that")
    llm_reasoning_effort: Effort | None = Field(default=None, description="how much a model that reasons is to reason")
    llm_seed: int | None = Field(default=None, description="the same answers for the same questions, where a server can")
    llm_format: Format = Field(
        default="auto", description="how an answer's shape is asked for; `auto` steps down where it is refused"
    )
    llm_extra: Annotated[dict[str, Any], BeforeValidator(_object)] = Field(
        default={}, description="an object that is merged into each request"
    )
    llm_concurrency: int = Field(default=16, ge=1, le=10_000, description="how many questions a process has under way at once")
    llm_price_in: Price = Field(default=0.0, description="what a million tokens of prompts cost, in the currency of the goals")
    llm_price_cached: Price | None = Field(default=None, description="the same of those that the server had cached; else as all")
    llm_price_out: Price = Field(default=0.0, description="what a million tokens of answers cost")
    llm_now: Time | None = Field(default=None, description="what prompts tell as the time, for runs that are to be repeated")

    @classmethod
    def read(cls, env: Mapping[str, str]) -> ModelVariables:
        """Read them off an environment; an empty variable counts as none.

        Raises:
            InvalidInputError: A value is malformed; the message names its variable, and not its value.
        """
        written = {name: env.get(f"IOA_{name.upper()}", "").strip() for name in cls.model_fields}
        try:
            return cls.model_validate({name: value for name, value in written.items() if value})
        except ValidationError as error:
            [problem, *_] = problems_of(error)
        # Raised here, where no other error that holds the values is its context.
        raise InvalidInputError(f"IOA_{problem[0].partition('.')[0].upper()}: {problem[1]}.")


@dataclass(frozen=True)
class ModelSettings:
    """Where the model is, what it is called, and what each request to it says.

    Attributes:
        context: Tokens that fit into a request with its answer; None: ask the server.
        extra: What is merged into each request.
        concurrency: How many questions may be under way at once.
    """

    base_url: str
    model: str
    api_key: SecretStr | None = None
    api_key_header: str = DEFAULT_KEY_HEADER
    context: int | None = None
    reasoning_effort: Effort | None = None
    seed: int | None = None
    format: Format = "auto"
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    concurrency: int = 16

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> ModelSettings | None:
        """Read `IOA_LLM_*`, then the usual `OPENAI_*`; None if no model is asked for.

        A model is asked for by naming it: a key or an address alone often stands in an environment for other programs. A key
        of `OPENAI_API_KEY` is never sent to the address in `IOA_LLM_BASE_URL`, since it may belong to somebody else.

        Raises:
            InvalidInputError: `IOA_LLM_BASE_URL` stands without a model, the address is none, the key's file cannot be read, or
                another variable is malformed.
        """
        own = ModelVariables.read(env)
        model = own.llm_model or env.get("OPENAI_MODEL", "").strip()
        if not model:
            if own.llm_base_url:
                raise InvalidInputError("IOA_LLM_BASE_URL is set, but no model is named.", hint="Set IOA_LLM_MODEL.")
            return None
        url = own.llm_base_url or env.get("OPENAI_BASE_URL", "").strip() or DEFAULT_BASE_URL
        _check_url(url)
        key = _key_of(own) or ("" if own.llm_base_url else env.get("OPENAI_API_KEY", "").strip())
        return cls(
            base_url=url.rstrip("/"),
            model=model,
            api_key=SecretStr(key) if key else None,
            api_key_header=own.llm_api_key_header,
            context=own.llm_context,
            reasoning_effort=own.llm_reasoning_effort,
            seed=own.llm_seed,
            format=own.llm_format,
            extra=MappingProxyType(own.llm_extra),
            concurrency=own.llm_concurrency,
        )


def _key_of(own: ModelVariables) -> str:
    key = own.llm_api_key.get_secret_value()
    if own.llm_api_key_file is None:
        return key
    if key:
        raise InvalidInputError("IOA_LLM_API_KEY and IOA_LLM_API_KEY_FILE are both set.", hint="Keep one of them.")
    try:
        return own.llm_api_key_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"IOA_LLM_API_KEY_FILE: the file cannot be read ({type(error).__name__}).") from None


def _check_url(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise InvalidInputError("The address of the language model is no URL.", hint=_HINT) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInputError("The address of the language model is no http or https URL.", hint=_HINT)
