"""The pool file: which agents `ioa up` runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.protocol.validation_errors import in_words
from ioa.sandbox import SETTING, level_here


class PooledAgent(BaseModel):
    """One agent of the pool. `target` is MODULE:ATTR, or FILE.py:ATTR relative to the pool file.

    One that `needs_model` joins only where a language model is configured; one that `needs_sandbox`, since it runs code that others
    write, only where that is allowed and a sandbox holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Annotated[str, Field(pattern=r"^.+:[A-Za-z_]\w*$")]
    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    env: dict[str, str] = Field(default_factory=dict)
    needs_model: bool = False
    needs_sandbox: bool = False


class Pool(BaseModel):
    """A list of agents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agents: tuple[PooledAgent, ...] = ()


def read_pool(
    path: Path | None, environment: Mapping[str, str], tell: Callable[[str], None] = lambda _: None, *, allow_code: bool = False
) -> Pool:
    """Read a pool file, with file targets made absolute, and leave out whom this machine or environment lacks something for.

    Args:
        path: The file; None is a pool of nobody.
        environment: Where settings are looked for; those of an agent are added.
        tell: Told in a sentence who is left out since it runs code. For want of a model nobody is told, since none is usual.
        allow_code: Whether agents may join that run code which others write.

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
    joining = (agent for agent in pool.agents if _can_join(agent, {**environment, **agent.env}, tell, allow_code=allow_code))
    return Pool(agents=tuple(_absolute(agent, path.parent) for agent in joining))


def _can_join(agent: PooledAgent, environment: Mapping[str, str], tell: Callable[[str], None], *, allow_code: bool) -> bool:
    if agent.needs_model and not _has_model(environment):
        return False
    if agent.needs_sandbox and not allow_code:
        tell(f"{agent.target} is left out, since it runs code that others write. --allow-code lets it join.")
        return False
    if agent.needs_sandbox:
        try:
            level_here(environment.get(SETTING))
        except MissingExtraError as error:
            tell(f"{agent.target} is left out. {error}")
            return False
    return True


def _has_model(environment: Mapping[str, str]) -> bool:
    if not any(name.startswith(("IOA_LLM_", "OPENAI_")) for name in environment):
        return False
    from ioa.adapters.openai.settings import models_named  # what only a model needs is imported only for one

    return models_named(environment)


def _absolute(agent: PooledAgent, folder: Path) -> PooledAgent:
    source, _, attribute = agent.target.rpartition(":")
    if not source.endswith(".py"):
        return agent
    return agent.model_copy(update={"target": f"{(folder / source).resolve()}:{attribute}"})
