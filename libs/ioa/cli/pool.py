"""The pool file: which agents `ioa up` runs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ioa.errors import InvalidInputError


class PooledAgent(BaseModel):
    """One agent of the pool. `target` is MODULE:ATTR, or FILE.py:ATTR relative to the pool file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Annotated[str, Field(pattern=r"^.+:[A-Za-z_]\w*$")]
    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    env: dict[str, str] = Field(default_factory=dict)


class Pool(BaseModel):
    """A list of agents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agents: tuple[PooledAgent, ...] = ()


def read_pool(path: Path) -> Pool:
    """Read a pool file, with file targets made absolute.

    Raises:
        InvalidInputError: The file is missing, is no TOML, or has an unknown field; the message names it.
    """
    try:
        pool = Pool.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInputError(f"The pool file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"The pool file {path} is no TOML: {error}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInputError(f"The pool file {path} is not valid: {where}: {first['msg']}.") from None
    return Pool(agents=tuple(_absolute(agent, path.parent) for agent in pool.agents))


def _absolute(agent: PooledAgent, folder: Path) -> PooledAgent:
    source, _, attribute = agent.target.rpartition(":")
    if not source.endswith(".py"):
        return agent
    return agent.model_copy(update={"target": f"{(folder / source).resolve()}:{attribute}"})
