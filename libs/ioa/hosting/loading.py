"""Agents of an author's files and modules, as a deployment runs them.

The environment of `ioa agent run`, and of an agent's own script, contains the replica number and fields of the card.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from ioa.agent.definition import AgentDefinition
from ioa.errors import InvalidInputError, IoaError
from ioa.protocol.cards import Skill
from ioa.protocol.model import Instruction
from ioa.protocol.texts import in_words

REPLICA, CARD = "IOA_REPLICA", "IOA_CARD"

_NUMBER_AT_THE_END = re.compile(r"(?:.*-)?(\d{1,6})")


class DeployedCard(Instruction):
    """Fields of an agent's card that replace what its author wrote; those left out stay as they are."""

    agent_id: str | None = None
    description: str | None = None
    skills: tuple[str | Skill, ...] | None = None
    examples: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    may_team_up: bool | None = None
    leads: bool | None = None
    accepts: tuple[str, ...] | None = None


def replica_of(environment: Mapping[str, str]) -> int | None:
    """Return the replica number of this process, also from a name that ends with a number, such as a StatefulSet's pod.

    Raises:
        InvalidInputError: There is no number at the end.
    """
    given = environment.get(REPLICA)
    if not given:
        return None
    found = _NUMBER_AT_THE_END.fullmatch(given)
    if found is None:
        raise InvalidInputError(f"{REPLICA}: {given!r} is no number and does not end with one, as writer-2 does.")
    return int(found[1])


def as_deployed(agents: Sequence[AgentDefinition], environment: Mapping[str, str]) -> Sequence[AgentDefinition]:
    """Return the agents with the fields of the deployment's card.

    Raises:
        InvalidInputError: The card cannot be read or is not valid, or there are several agents for one card.
    """
    path = environment.get(CARD)
    if not path:
        return agents
    if len(agents) != 1:
        raise InvalidInputError(f"{CARD} is the card of one agent, but {len(agents)} are to run.", hint="Run each by itself.")
    try:
        card = DeployedCard.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInputError(f"{CARD}: {path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        raise InvalidInputError(f"{CARD}: {path}: {in_words(error, 'JSON')}.") from None
    return [agents[0].with_card(**{name: getattr(card, name) for name in card.model_fields_set})]


def load_agent(target: str) -> AgentDefinition:
    """Load `module:attribute` or `path/to/file.py:attribute`.

    Raises:
        InvalidInputError: There is no such file, module or attribute, or it is no `Agent`.
    """
    source, _, attribute = target.rpartition(":")
    if not source:
        raise InvalidInputError(f"{target!r} names no agent.", hint="Write MODULE:ATTR or FILE.py:ATTR, such as echo.py:agent.")
    with _reported_errors(source):
        module = _load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    found = getattr(module, attribute, None)
    if not isinstance(found, AgentDefinition):
        what = "has no such attribute" if found is None else f"holds a {type(found).__name__} there"
        raise InvalidInputError(f"{source} {what}: {attribute!r}.", hint="It must be an ioa.Agent.")
    return found


def _load_file(path: Path) -> object:
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}.")
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):  # another agent of the same file
        return loaded
    name = path.stem if loaded is None else str(path.with_suffix(""))
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # As for a script: its folder is searched for its imports, and it can be imported by name.
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _load_module(name: str) -> object:
    # As `python -m` would, which an installed command does not: modules of this folder can be named.
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


@contextmanager
def _reported_errors(source: str) -> Iterator[None]:
    """Report an error of an author's module with its traceback."""
    try:
        yield
    except IoaError:
        raise
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"{source} needs the module {error.name!r}, which is not installed.",
            hint="Is the name right? What the examples need comes with the extra `examples`.",
        ) from None
    except Exception as error:  # noqa: BLE001 - an author's module may raise anything
        lines = "".join(traceback.format_exception(error)).rstrip()
        raise InvalidInputError(f"{source} cannot be loaded:\n{lines}", hint="Mend the file.") from None
