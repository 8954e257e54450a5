"""Which language model is asked, and what that may take: one class of settings, and where each of them may be said.

Each setting is a variable `IOA_LLM_…`, a key in a table of the TOML file that `IOA_LLM_CONFIG` names, and a field of
`ModelSettings`, which an agent's author may give. Whoever runs an agent decides over its author, and what is said of one agent goes
over what is said of all: built in, author, the file's `[model]`, environment, the file's `[agents.<pool>]`.

They are read once, when a process starts. An error names the variable, or the file with its table and key. The file holds no keys,
and a key appears in no error, log or repr; it never goes to another address than the one it was given with.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import httpx
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from ioa.errors import InvalidInputError
from ioa.ports.chat_model import Effort
from ioa.protocol.model import Time, as_seconds
from ioa.protocol.validation_errors import problems_of

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_CONTEXT_TOKENS = 128_000
DEFAULT_KEY_HEADER = "Authorization"
CONFIG = "IOA_LLM_CONFIG"

_HINT = "docs/models.md says what each setting takes."
_OF_THE_ADDRESS = ("api_key", "api_key_header")
_TABLES = ("model", "models", "agents")

Format = Literal["auto", "json_schema", "json_object", "plain"]
"""How the shape of an answer is asked for; `auto` begins with the strictest way and steps down where a server refuses it."""


def _object(written: object) -> object:
    try:
        return json.loads(written) if isinstance(written, str) else written
    except ValueError:
        raise ValueError("it is no JSON") from None


def _address(url: str) -> str:
    try:
        parsed = httpx.URL(url)
        is_one = parsed.scheme in ("http", "https") and bool(parsed.host)
    except httpx.InvalidURL:
        is_one = False
    if url and not is_one:
        raise ValueError("it is no http or https URL, such as http://localhost:8080/v1")
    return url.rstrip("/")


Seconds = Annotated[timedelta, BeforeValidator(as_seconds), Field(gt=timedelta(0))]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]


@checked_dataclass(frozen=True, config=ConfigDict(hide_input_in_errors=True))
class ModelSettings:
    """A language model, what each request to it says, and what its answers may take; `docs/models.md` has the table."""

    base_url: Annotated[str, AfterValidator(_address)] = Field(
        description="where the language model is; usually ends in `/v1` (else `OPENAI_BASE_URL`)"
    )
    model: str = Field(description="which model (else `OPENAI_MODEL`); none: agents are led by rules")
    api_key: SecretStr | None = Field(
        default=None,
        description="its key (else `OPENAI_API_KEY`), which goes to no address that is said in another place",
    )
    api_key_header: HeaderName = Field(
        default=DEFAULT_KEY_HEADER, description="the header that carries the key; any other carries it without `Bearer`"
    )
    context: int | None = Field(
        default=None, ge=1_000, description="tokens that fit into a request with its answer; else the server is asked, else 128,000"
    )
    max_prompt: int = Field(
        default=100_000,
        ge=500,
        description="the most tokens of a prompt, with what its model READs, however large the context",
    )
    max_answer: int = Field(default=16_000, ge=16, description="the most tokens of an answer, its reasoning included")
    timeout: Seconds = Field(
        default=timedelta(seconds=120), description="for one answer, with the retries of its transport, once its turn has come"
    )
    patience: Seconds = Field(
        default=timedelta(seconds=600),
        description="for one decision with its repairs, and for a model that is away; the agent keeps the floor meanwhile",
    )
    fallback: Literal["none", "rules"] = Field(
        default="none", description="what decides where the model does not: nobody, so that the floor is passed on, or `rules`"
    )
    temperature: float = Field(default=0.2, ge=0, le=2, description="how freely the model chooses, where it takes that")
    reasoning_effort: Effort | None = Field(default=None, description="how much a model that reasons is to reason")
    seed: int | None = Field(default=None, description="the same answers for the same questions, where a server can")
    format: Format = Field(default="auto", description="how an answer's shape is asked for; `auto` steps down where it is refused")
    stream: bool = Field(default=True, description="whether the text of a task is shown while it is written, where a server can")
    extra: Annotated[Mapping[str, Any], BeforeValidator(_object)] = Field(
        default_factory=dict, description="an object that is merged into each request"
    )
    concurrency: int = Field(
        default=16, ge=1, le=10_000, description="how many questions a process has under way at once; users take turns at them"
    )
    price_in: Price = Field(default=0.0, description="what a million tokens of prompts cost, in the currency of the goals")
    price_cached: Price | None = Field(default=None, description="the same of those that the server had cached; else as all")
    price_out: Price = Field(default=0.0, description="what a million tokens of answers cost")
    now: Time | None = Field(default=None, description="what prompts tell as the time, for runs that are to be repeated")

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str], pool: str = "", own: ModelSettings | str | None = None
    ) -> ModelSettings | None:
        """Read which model an agent has; None if none is asked for.

        A model is asked for by naming it: a key or an address alone often stands in an environment for other programs.

        Args:
            env: `IOA_LLM_…`, the file that `IOA_LLM_CONFIG` names, and where nothing else is said the usual `OPENAI_…`.
            pool: The agent's own id, for what `[agents.<pool>]` says of it.
            own: What its author says: settings, or the name of a table `[models.<name>]`.

        Raises:
            InvalidInputError: `IOA_LLM_BASE_URL` stands without a model or file, a file cannot be read, there is no table of the
                name, or a value is malformed.
        """
        settings = cls.layered(env, pool, own)
        if settings.model:
            return settings
        if env.get("IOA_LLM_BASE_URL", "").strip() and not env.get(CONFIG, "").strip():
            raise InvalidInputError("IOA_LLM_BASE_URL is set, but no model is named.", hint="Set IOA_LLM_MODEL.")
        return None

    @classmethod
    def layered(cls, env: Mapping[str, str], pool: str = "", own: ModelSettings | str | None = None) -> ModelSettings:
        """Read the same where a model need not be named, for what is said besides of an agent whose author gave it one."""
        file, values = _ModelFile.read(env), _usual(env)
        of_all = file.table("model")
        if isinstance(own, str):
            of_all = _over(of_all, file.named(own, pool))
        of_all = _over(of_all, _variables(env))
        if isinstance(own, ModelSettings):
            of_all = _at_an_address(of_all, values)
            values = {one.name: getattr(own, one.name) for one in fields(own)}
        values = _over(_over(values, of_all), file.of_pool(pool))
        if not values["model"]:
            values["base_url"] = ""  # it is somebody else's, and need not be an address
        return cls(**_checked(values, lambda key: f"OPENAI_{key.upper()}"))


Values: TypeAlias = dict[str, Any]
"""Settings that are said in one place, by the names of their fields."""

_SETTINGS: TypeAdapter[ModelSettings] = TypeAdapter(ModelSettings)
_NAMES = tuple(one.name for one in fields(ModelSettings))


def models_named(env: Mapping[str, str]) -> bool:
    """Whether some agent has a model by what the environment and the file say.

    Raises:
        InvalidInputError: As `ModelSettings.from_environment`.
    """
    pools = ("", *_ModelFile.read(env).pools)
    return any(ModelSettings.from_environment(env, pool) is not None for pool in pools)


def _over(below: Values, said: Values) -> Values:
    """Put what is said nearer over the rest. An address comes with its own key or with none: that of another is not for it."""
    others = _OF_THE_ADDRESS if "base_url" in said else ()
    return {**{name: value for name, value in below.items() if name not in others}, **said}


def _at_an_address(said: Values, usual: Values) -> Values:
    """Say the usual address of a model that is named for all agents without one, so that an author's address gets none of it.

    A key without a model is for nobody whose author has given a model.
    """
    if "base_url" in said:
        return said
    if "model" in said:
        return _over({name: usual[name] for name in ("base_url", "api_key")}, said)
    return {name: value for name, value in said.items() if name not in _OF_THE_ADDRESS}


def _usual(env: Mapping[str, str]) -> Values:
    said = {name: env.get(f"OPENAI_{name.upper()}", "").strip() for name in ("base_url", "model", "api_key")}
    return {"base_url": said["base_url"] or DEFAULT_BASE_URL, "model": said["model"], "api_key": said["api_key"] or None}


def _variables(env: Mapping[str, str]) -> Values:
    def called(name: str) -> str:
        return f"IOA_LLM_{name.upper()}"

    written = {name: env.get(called(name), "").strip() for name in (*_NAMES, "api_key_file")}
    said: Values = {name: value for name, value in written.items() if value}
    if "api_key" in said and "api_key_file" in said:
        raise InvalidInputError("IOA_LLM_API_KEY and IOA_LLM_API_KEY_FILE are both set.", hint="Keep one of them.")
    return _checked(_with_key(said, Path(), env, called), called)


def _checked(said: Values, called: Callable[[str], str]) -> Values:
    """Return the values as what they are.

    Raises:
        InvalidInputError: One is malformed; the message has what it is called, and not the value.
    """
    try:
        whole = _SETTINGS.validate_python({"base_url": "", "model": "", **said})
    except ValidationError as error:
        [problem, *_] = problems_of(error)
    else:
        return {name: getattr(whole, name) for name in said}
    # Raised here, where no other error that holds the values is its context.
    raise InvalidInputError(f"{called(problem[0].partition('.')[0])}: {problem[1]}.", hint=_HINT)


def _with_key(said: Values, folder: Path, env: Mapping[str, str], called: Callable[[str], str]) -> Values:
    """Put the key in the place of what names it: a file, relative to a folder, or a variable."""
    others = {name: value for name, value in said.items() if name not in ("api_key_file", "api_key_env")}
    if variable := said.get("api_key_env"):
        if not (key := env.get(variable, "").strip()):
            raise InvalidInputError(f"{called('api_key_env')}: the variable {variable} is not set.")
        return {**others, "api_key": key}
    if file := said.get("api_key_file"):
        try:
            return {**others, "api_key": (folder / file).read_text(encoding="utf-8").strip()}
        except (OSError, UnicodeDecodeError) as error:
            why = type(error).__name__
        raise InvalidInputError(f"{called('api_key_file')}: the file cannot be read ({why}).")
    return others


@dataclass(frozen=True)
class _ModelFile:
    """What the file says, table by table, checked but for the keys that it points to: those of other agents need not be here.

    Attributes:
        tables: By what stands in their brackets, such as `agents.writer`.
    """

    env: Mapping[str, str] = field(repr=False)
    path: Path
    tables: Mapping[str, Values] = field(default_factory=dict)

    @classmethod
    def read(cls, env: Mapping[str, str]) -> _ModelFile:
        """Read the file that the environment names; nothing if it names none.

        Raises:
            InvalidInputError: It cannot be read, or says something that it cannot say; the message has the table and the key.
        """
        path = Path(env.get(CONFIG, "").strip())
        if path == Path():
            return cls(env, path)
        try:
            written = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            problem = f"is no TOML: {error}" if isinstance(error, tomllib.TOMLDecodeError) else "is no text in UTF-8"
        else:
            return cls(env, path, _tables(written, path))
        raise InvalidInputError(f"{CONFIG}: {path} {problem}.")

    @property
    def pools(self) -> tuple[str, ...]:
        """Whom the file says something of."""
        return tuple(name.removeprefix("agents.") for name in self.tables if name.startswith("agents."))

    def table(self, name: str) -> Values:
        """Return what a table says, with the key that it points to; nothing if there is no such table."""
        return _with_key(
            self.tables.get(name, {}), self.path.parent, self.env, lambda key: f"{CONFIG}: {self.path}: [{name}] {key}"
        )

    def named(self, model: str, pool: str) -> Values:
        """Return what the table of a model says that an agent's author names.

        Raises:
            InvalidInputError: There is no such table.
        """
        if f"models.{model}" in self.tables:
            return self._of_model(model)
        there = ", ".join(name for name in self.tables if name.startswith("models.")) or "none"
        raise InvalidInputError(
            f"Agent {pool!r} has the model {model!r}, and no table [models.{model}] says which that is (there: {there}).",
            hint=f"Write the table into the file that {CONFIG} names, or give the agent ModelSettings.",
        )

    def of_pool(self, pool: str) -> Values:
        """Return what is said of one agent, over what is said of the model that it names."""
        own = self.table(f"agents.{pool}")
        if f"models.{own.get('model')}" not in self.tables:
            return own
        return _over(self._of_model(own.pop("model")), own)

    def _of_model(self, name: str) -> Values:
        return {"model": name, **self.table(f"models.{name}")}


def _tables(written: Mapping[str, object], path: Path) -> dict[str, Values]:
    found: dict[str, object] = {}
    for name, said in written.items():
        where = f"{CONFIG}: {path}: [{name}]"
        if name not in _TABLES:
            raise InvalidInputError(f"{where} is no table of it (the nearest is [{_nearest(name, _TABLES)}]).", hint=_HINT)
        found |= {name: said} if name == "model" else {f"{name}.{each}": one for each, one in _as_table(said, where).items()}
    return {name: _table(said, f"{CONFIG}: {path}: [{name}]") for name, said in found.items()}


def _as_table(said: object, where: str) -> Values:
    if not isinstance(said, dict):
        raise InvalidInputError(f"{where}: it is no table.", hint=_HINT)
    return said


def _table(written: object, where: str) -> Values:
    said = _as_table(written, where)
    pointers, known = ("api_key_env", "api_key_file"), {*_NAMES, "api_key_env", "api_key_file"} - {"api_key"}
    if "api_key" in said:
        raise InvalidInputError(
            f"{where} api_key: the file holds no keys.", hint="Name a variable by api_key_env, or a file by api_key_file."
        )
    for key in said:
        if key not in known:
            raise InvalidInputError(f"{where} {key}: there is no such setting (the nearest is {_nearest(key, known)}).", hint=_HINT)
    points = {key: said[key] for key in pointers if key in said}
    if len(points) > 1:
        raise InvalidInputError(f"{where}: api_key_env and api_key_file are both set.", hint="Keep one of them.")
    for key, value in points.items():
        if not isinstance(value, str) or not value:
            raise InvalidInputError(f"{where} {key}: Input should be a text.", hint=_HINT)
    others = {key: value for key, value in said.items() if key not in points}
    return {**_checked(others, lambda key: f"{where} {key}"), **points}


def _nearest(name: str, known: Collection[str]) -> str:
    [nearest] = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.0)
    return nearest
