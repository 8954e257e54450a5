"""Settings of a language model, and where each can be set.

Later sources override earlier ones: defaults and `OPENAI_…`, the agent's author, `IOA_LLM_…`, the agent's table in the TOML file
`IOA_LLM_CONFIG`. A key is used only with the address of the same source. No error, log or repr contains a key.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import httpx
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ioa.errors import InvalidInputError
from ioa.protocol.model import as_seconds
from ioa.protocol.texts import problems_of

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_CONTEXT_TOKENS = 128_000
CONFIG = "IOA_LLM_CONFIG"
_HINT = "docs/models.md lists the settings."
Values: TypeAlias = dict[str, Any]
"""Settings of a source, by field."""


def _object(written: object) -> object:
    try:
        return json.loads(written) if isinstance(written, str) else written
    except ValueError:
        raise ValueError("it is not JSON") from None


def _address(url: str) -> str:
    try:
        parsed = httpx.URL(url)
        is_valid = parsed.scheme in ("http", "https") and bool(parsed.host)
    except httpx.InvalidURL:
        is_valid = False
    if url and not is_valid:
        raise ValueError("it is not an http or https URL, such as http://localhost:8080/v1")
    return url.rstrip("/")


def _split(written: object) -> object:
    return [part for part in written.split(",") if part.strip()] if isinstance(written, str) else written


Seconds = Annotated[timedelta, BeforeValidator(as_seconds), Field(gt=timedelta(0))]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(hide_input_in_errors=True, extra="forbid"))
class ModelSettings:
    """A language model; docs/models.md has the table."""

    base_url: Annotated[str, AfterValidator(_address)] = Field(
        description="the address; usually ends in `/v1` (default `OPENAI_BASE_URL`, otherwise OpenAI)"
    )
    model: str = Field(description="the model (default `OPENAI_MODEL`); without one, agents are led by rules")
    api_key: SecretStr | None = Field(
        default=None, description="the key (default `OPENAI_API_KEY`); used only with the address of the same source"
    )
    context: int | None = Field(
        default=None,
        ge=1_000,
        description="maximum tokens of a prompt with its answer (default 128,000, or as the server's errors state)",
    )
    max_answer: int = Field(default=16_000, ge=16, description="maximum tokens of an answer, including its reasoning")
    timeout: Seconds = Field(default=timedelta(seconds=120), description="timeout of an answer, including retries")
    patience: Seconds = Field(
        default=timedelta(seconds=600),
        description="timeout of a decision, including repairs and an unavailable model; the agent keeps the floor meanwhile",
    )
    prices: Annotated[tuple[Price, ...], BeforeValidator(_split)] = Field(
        default=(),
        max_length=3,
        description="prices of a million tokens: prompts, answers and, if different, cached prompts, such as `2.5,10,0.25`",
    )
    extra: Annotated[Mapping[str, Any], BeforeValidator(_object)] = Field(
        default_factory=dict, description='fields of each request, such as `{"temperature": 0, "reasoning_effort": "low"}`'
    )

    @classmethod
    def from_environment(cls, env: Mapping[str, str], agent_id: str = "", own: ModelSettings | None = None) -> ModelSettings | None:
        """Read the settings of an agent's model; None if no model is named.

        Args:
            env: The environment variables.
            agent_id: The agent's id without the replica number, for its table.
            own: Settings of the agent's author.

        Raises:
            InvalidInputError: A setting is malformed, or `IOA_LLM_BASE_URL` is set without a model.
        """
        settings = cls.layered(env, agent_id, own)
        if settings.model:
            return settings
        if env.get("IOA_LLM_BASE_URL", "").strip() and not env.get(CONFIG, "").strip():
            raise InvalidInputError("IOA_LLM_BASE_URL is set, but no model is named.", hint="Set IOA_LLM_MODEL.")
        return None

    @classmethod
    def layered(cls, env: Mapping[str, str], agent_id: str = "", own: ModelSettings | None = None) -> ModelSettings:
        """Read the settings of an agent; `model` and `base_url` are empty if no model is named."""
        usual: Values = {"base_url": DEFAULT_BASE_URL, "model": ""} | _variables(env, "OPENAI_", ("base_url", "model", "api_key"))
        variables, (table, where) = _variables(env, "IOA_LLM_", _NAMES), _read_table(env, agent_id)
        values = usual
        if own is not None:
            values = {name: getattr(own, name) for name in _NAMES}
            if "model" in variables:  # at the usual address, and not at the author's
                values = _override(values, {name: usual[name] for name in ("base_url", "api_key") if name in usual})
            elif "base_url" not in variables:
                variables.pop("api_key", None)
        values = _override(_override(values, variables), table)
        if not values["model"]:
            values["base_url"] = ""  # of another program, and perhaps no address
        try:
            return _SETTINGS.validate_python(values)
        except ValidationError as error:
            [(path, problem), *_] = problems_of(error)
        # Raised here, so that the error with the values is not its context.
        name = path.partition(".")[0]
        source = f"{where} {name}" if name in table else f"{'IOA_LLM_' if name in variables else 'OPENAI_'}{name.upper()}"
        raise InvalidInputError(f"{source}: {problem}.", hint=_HINT)


_SETTINGS: TypeAdapter[ModelSettings] = TypeAdapter(ModelSettings)
_NAMES = tuple(one.name for one in fields(ModelSettings))


def models_named(env: Mapping[str, str]) -> bool:
    """Return whether the environment or the file names a model for an agent.

    Raises:
        InvalidInputError: A setting is malformed.
    """
    return any(ModelSettings.from_environment(env, agent_id) is not None for agent_id in ("", *_read_file(env)))


def _override(below: Values, above: Values) -> Values:
    """Merge two sources. A key is not used with the address of another source."""
    return {**{name: value for name, value in below.items() if name != "api_key" or "base_url" not in above}, **above}


def _variables(env: Mapping[str, str], prefix: str, names: Sequence[str]) -> Values:
    return {name: value for name in names if (value := env.get(f"{prefix}{name.upper()}", "").strip())}


def _read_file(env: Mapping[str, str]) -> Mapping[str, Any]:
    if not (path := env.get(CONFIG, "").strip()):
        return {}
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"{CONFIG}: {path} cannot be read: {error}."
    raise InvalidInputError(problem)


def _read_table(env: Mapping[str, str], agent_id: str) -> tuple[Values, str]:
    """Read an agent's table, and its name in errors. Keys are in `api_key_env` or `api_key_file` (relative to the file)."""
    table, where = _read_file(env).get(agent_id, {}), f"{CONFIG}: {env.get(CONFIG)}: [{agent_id}]"
    if not isinstance(table, dict):
        raise InvalidInputError(f"{where} is not a table.", hint=_HINT)
    if "api_key" in table:
        raise InvalidInputError(f"{where} api_key: keys are not allowed in the file.", hint="Use api_key_env or api_key_file.")
    settings = {name: value for name, value in table.items() if name not in ("api_key_env", "api_key_file")}
    try:
        if variable := table.get("api_key_env"):
            settings["api_key"] = env[variable].strip()
        if file := table.get("api_key_file"):
            settings["api_key"] = (Path(env[CONFIG]).parent / file).read_text(encoding="utf-8").strip()
    except (KeyError, TypeError, OSError, ValueError) as error:
        problem = f"{where}: the key cannot be read: {type(error).__name__}: {error}."
    else:
        return settings, where
    raise InvalidInputError(problem, hint=_HINT)
