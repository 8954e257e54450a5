"""Settings of a deployment for an agent: its replica number and fields of its card.

They come from the environment, for `ioa agent run` and for an agent's own script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from ioa.agent.definition import AgentDefinition
from ioa.errors import InvalidInputError
from ioa.protocol.cards import Skill
from ioa.protocol.model import Instruction
from ioa.protocol.validation_errors import in_words

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
