"""The pool file: which agents `ioa up` runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.protocol.texts import in_words
from ioa.sandbox import SETTING, level_here


class PooledAgent(BaseModel):
    """One agent of the pool.

    Attributes:
        target: MODULE:ATTR, or FILE.py:ATTR relative to the pool file.
        replicas: How many agents with this card share the work.
        process: `own` gives each replica its own process, which can be killed alone; the others share a process.
        env: Variables for the agent, which gets its own process for them.
        needs_model: The agent joins only where a language model is configured.
        needs_sandbox: The agent runs code that others write: it gets its own process, and joins only where code is allowed and a
            sandbox holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Annotated[str, Field(pattern=r"^.+:[A-Za-z_]\w*$")]
    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    process: Literal["shared", "own"] = "shared"
    env: dict[str, str] = Field(default_factory=dict)
    needs_model: bool = False
    needs_sandbox: bool = False

    @property
    def has_own_process(self) -> bool:
        """Whether each replica runs in its own process."""
        return self.process == "own" or bool(self.env) or self.needs_sandbox


class Pool(BaseModel):
    """The agents to run, and the agents that cannot run here, each with the reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agents: tuple[PooledAgent, ...] = ()
    left_out: tuple[str, ...] = ()


def read_pool(path: Path | None, environment: Mapping[str, str], *, allow_code: bool = False) -> Pool:
    """Read a pool file, with file targets made absolute, without the agents that cannot run here.

    Args:
        path: The file; None is an empty pool.
        environment: Environment variables; those of an agent are added.
        allow_code: Whether agents that run untrusted code may run.

    Raises:
        InvalidInputError: The file is missing, is no TOML, or has an unknown field; the message names it.
    """
    if path is None:
        return Pool()
    try:
        pool = Pool.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInputError(f"The pool file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"The pool file {path} is no TOML: {error}.") from None
    except ValidationError as error:
        raise InvalidInputError(f"The pool file {path} is not valid: {in_words(error, 'file')}.") from None
    agents, left_out = list[PooledAgent](), list[str]()
    for agent in pool.agents:
        source, _, attribute = agent.target.rpartition(":")
        if why := _missing(agent, {**environment, **agent.env}, allow_code=allow_code):
            left_out.append(f"{Path(source).stem} ({why})")
        elif source.endswith(".py"):
            agents.append(agent.model_copy(update={"target": f"{(path.parent / source).resolve()}:{attribute}"}))
        else:
            agents.append(agent)
    return Pool(agents=tuple(agents), left_out=tuple(left_out))


def _missing(agent: PooledAgent, environment: Mapping[str, str], *, allow_code: bool) -> str:
    """Return why an agent cannot run here; empty if it can."""
    if agent.needs_model and not _has_model(environment):
        return "needs a language model"
    if agent.needs_sandbox and not allow_code:
        return "runs code: needs --allow-code"
    if agent.needs_sandbox:
        try:
            level_here(environment.get(SETTING))
        except MissingExtraError as error:
            return str(error)
    return ""


def _has_model(environment: Mapping[str, str]) -> bool:
    if not any(name.startswith(("IOA_LLM_", "OPENAI_")) for name in environment):
        return False
    from ioa.adapters.openai.settings import models_named  # what only a model needs is imported only for one

    return models_named(environment)
