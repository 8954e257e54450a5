"""Team files: a policy and the agents or people that fill its roles, as TOML, JSON or plain data.

A file may use shorthands. A written file has none, and reads back to the same team.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainSerializer, ValidationError, model_validator
from pydantic.functional_validators import BeforeValidator
from pydantic_core import ErrorDetails

from ioa.errors import InvalidInputError
from ioa.json_text import values_in
from ioa.protocol.ids import AgentId, AgentIdField
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import MAX_ROLES, FormField, Name, PolicyPart, Whole, listed, nearest, read_field
from ioa.protocol.teams.checker import MAX_FINDINGS, PolicyFinding, check, errors_of
from ioa.protocol.texts import check_texts, why_of

MAX_TURNS = 100
"""Default of `max_turns`."""
MAX_GOAL_CHARS = 32_000
MAX_NEED_CHARS = 4_000
MAX_VALUES = 20_000
"""Maximum values in a team file, each list and table included."""


class Filling(PolicyPart):
    """The holders of a role.

    Attributes:
        agents: Ids of agents, or of pools, of which an idle replica is taken.
        need: Instead of `agents`: what the holders must be able to do, for discovery.
        count: Number of holders from one pool or for a need.
    """

    role: Name
    agents: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_ROLES)] = ()
    need: Annotated[str, Field(max_length=MAX_NEED_CHARS)] = ""
    count: Annotated[int, Field(strict=True, ge=1, le=MAX_ROLES)] = 1

    @property
    def names(self) -> tuple[AgentId, ...]:
        """Names of the holders before the team is cast: several agents by their ids, otherwise by the role."""
        if len(self.agents) > 1:
            return self.agents
        if self.count > 1:
            return tuple([AgentId(f"{self.role}-{number}") for number in range(1, self.count + 1)])
        return (AgentId(self.role),)

    @model_validator(mode="after")
    def _is_filled_one_way(self) -> Filling:
        if bool(self.agents) == bool(self.need):
            raise ValueError("give one of `agent`, `agents`, `need` and `human`")
        if self.count > 1 and (len(self.agents) > 1 or any(map(is_seat, self.agents))):
            raise ValueError("`count` goes with one `agent`, a pool, or with a `need`; give each person a role")
        return self


class TeamSpec(PolicyPart):
    """A team: its policy and the holders of its roles.

    Attributes:
        team: Name of the team.
        goal: Goal of the team, unless a goal is given when it runs.
        fillings: One for each role, in their order.
    """

    team: Annotated[str, Field(min_length=1, max_length=64)]
    goal: Annotated[str, Field(max_length=MAX_GOAL_CHARS)] = ""
    max_turns: Whole = MAX_TURNS
    policy: Policy
    fillings: tuple[Filling, ...]

    @property
    def leader(self) -> Filling:
        """The filling of the role that opens the group: the leader's, or if that is a person, the first that agents hold."""
        able = [filling for filling, role in zip(self.fillings, self.policy.roles, strict=True) if not role.human]
        return next((one for one in able if one.role == self.policy.leader), able[0])

    @property
    def holders(self) -> Mapping[str, int]:
        """Number of holders of each role."""
        return {filling.role: len(filling.names) for filling in self.fillings}

    def check(self) -> tuple[PolicyFinding, ...]:
        """Return the warnings about a team; a team with errors cannot be read."""
        return check(self.policy, self.holders)


_SEAT = "human-"


def seat_of(person: str) -> AgentId:
    """Return the id under which a person takes part."""
    return AgentId(f"{_SEAT}{person}")


def is_seat(agent_id: AgentId) -> bool:
    """Whether an id is the seat of a person."""
    return agent_id.startswith(_SEAT)


def person_of(seat: AgentId) -> str:
    """Return the person that a seat belongs to."""
    return seat.removeprefix(_SEAT)


class TeamError(InvalidInputError):
    """A team file that cannot be used.

    Attributes:
        findings: The errors.
    """

    def __init__(self, findings: tuple[PolicyFinding, ...]) -> None:
        super().__init__("; ".join(map(str, findings)), hint="`ioa team check FILE` shows each on its own line.")
        self.findings = findings


def read_toml(text: str) -> TeamSpec:
    """Read a team file.

    Raises:
        InvalidInputError: The text is no TOML; a `TeamError` if it is no team.
    """
    return team_of(_parsed(tomllib.loads, text, "TOML"))


def read_json(text: str) -> TeamSpec:
    """Read a team file that is written as JSON.

    Raises:
        InvalidInputError: The text is no JSON; a `TeamError` if it is no team.
    """
    return team_of(_parsed(json.loads, text, "JSON"))


def _parsed(parse: Callable[[str], object], text: str, form: str) -> object:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"This is no {form}: {error}.") from None


_OF_TEAM = ("team", "goal", "max_turns")
_OF_POLICY = ("leader", "ends", "seed", "silent", "heard_by", "watchers", "nodes")
_TOP = (*_OF_TEAM, *_OF_POLICY, "roles")
_FILLED = ("agents", "need", "count")


def team_of(document: object) -> TeamSpec:
    """Read a team from the plain data of a team file, and check it.

    Raises:
        TeamError: It contains the errors.
    """
    if not isinstance(document, Mapping):
        raise _team_error("a team is a table with `team`, `roles` and `nodes`")
    if values_in(document, MAX_VALUES) >= MAX_VALUES:
        raise _team_error(f"it has more than {MAX_VALUES:,} values")
    try:
        check_texts(document, "team")
    except InvalidInputError as error:
        raise _team_error(str(error)) from None
    roles = document.get("roles")
    if not isinstance(roles, Mapping) or not roles:
        raise _team_error("`roles` must be a table under `[roles]` with the agent or person of each role")
    if unknown := next((str(key)[:64] for key in document if key not in _TOP), None):
        raise _team_error(f"there is no `{unknown}`{nearest(unknown, _TOP) or f'; there are {listed(_TOP)}'}")
    parts = [_role(str(name), written) for name, written in roles.items()]
    policy = {name: document[name] for name in _OF_POLICY if name in document} | {"roles": [role for role, _ in parts]}
    top = {name: document[name] for name in _OF_TEAM if name in document}
    try:
        team = TeamSpec.model_validate({**top, "policy": policy, "fillings": [filling for _, filling in parts]})
    except ValidationError as error:
        raise TeamError(_findings(error, list(map(str, roles)), document.get("nodes"))) from None
    if errors := errors_of(team.policy, team.holders):
        raise TeamError(errors)
    return team


def _role(name: str, written: object) -> tuple[object, dict[str, Any]]:
    """Return the role and its filling; their validation finds errors."""
    written = {"agent": written} if isinstance(written, str) else written
    filling: dict[str, Any] = {"role": name}
    if not isinstance(written, Mapping):
        return written, {**filling, "agents": ["nobody"]}
    human, named = written.get("human"), [written["agent"]] if "agent" in written else []
    role = {"name": name, **{key: value for key, value in written.items() if key not in (*_FILLED, "agent")}}
    if human:
        named.append(seat_of(name if human is True else str(human)))
        role["human"] = human if not isinstance(human, str) else True
    filling |= {key: written[key] for key in _FILLED if key in written}
    if named:
        filling["agents"] = named if len(named) == 1 and "agents" not in written else []
    return role, filling


def _findings(error: ValidationError, roles: Sequence[str], nodes: object) -> tuple[PolicyFinding, ...]:
    """Describe pydantic's innermost errors with the place in the file, one for each field."""
    found: dict[tuple[str, str], PolicyFinding] = {}
    errors = error.errors(include_url=False)
    outer = {one["loc"][:length] for one in errors for length in range(len(one["loc"]))}
    for one in [one for one in errors if one["loc"] not in outer]:
        match one["loc"]:
            case ("policy", "roles", int(number), *rest) | ("fillings", int(number), *rest):
                where = f"role {roles[number][:64]}"
            case ("policy", "nodes", int(number), *rest) if isinstance(nodes, list | tuple):
                name = nodes[number].get("name") if isinstance(nodes[number], Mapping) else None
                where = f"node {name[:64] if isinstance(name, str) else number + 1}"
            case ("policy", "watchers", int(number), *rest):
                where = f"watcher {number + 1}"
            case ("policy", *rest) | (*rest,):
                where = ""
        parts = [str(part + 1) if isinstance(part, int) else part for part in rest]
        path = ".".join(part for part in parts if part.isidentifier() or part.isdecimal())
        found.setdefault((where, path), PolicyFinding("error", where, _reason(one, path)[:1_000]))
    return tuple(found.values())[:MAX_FINDINGS]


def _reason(error: ErrorDetails, path: str) -> str:
    why = why_of(error).replace("Input should be", "it must be")
    match error["type"]:
        case "missing":
            return f"`{path}` is missing"
        case "value_error":
            return f"`{path}`: {why}" if path else why
        case "string_pattern_mismatch":
            why = "a name is 1 to 32 of a-z 0-9 _ -, beginning with a letter"
    given = error["input"]
    return f"`{path}` is {'a table' if isinstance(given, Mapping | BaseModel) else repr(given)[:80]}: {why}"


def _team_error(what: str) -> TeamError:
    return TeamError((PolicyFinding("error", "", what[:1_000]),))


def document_of(team: TeamSpec) -> dict[str, Any]:
    """Return a team as the plain data of a team file, without defaults; it reads back to the same."""
    document = team.model_dump(mode="json")
    policy, fillings = document.pop("policy"), document.pop("fillings")
    nodes, roles = policy.pop("nodes"), {}
    for role, filling in zip(policy.pop("roles"), fillings, strict=True):
        name, agents = filling.pop("role"), filling.get("agents", ())
        if role.pop("human", False):
            person = person_of(filling.pop("agents")[0])
            filling["human"] = True if person == name else person
        elif len(agents) == 1:
            filling = {"agent": filling.pop("agents")[0], **filling}
        roles[name] = {**filling, **{key: value for key, value in role.items() if key != "name"}}
    return {**document, **policy, "roles": roles, "nodes": nodes}


def to_toml(team: TeamSpec) -> str:
    """Write a team file."""
    document = document_of(team)
    roles, nodes = document.pop("roles"), document.pop("nodes")
    tables = [("", document), ("[roles]", roles), *(("[[nodes]]", node) for node in nodes)]
    return (
        "\n\n".join(
            "\n".join([*([head] if head else []), *(f"{name} = {_toml(value)}" for name, value in table.items())])
            for head, table in tables
        )
        + "\n"
    )


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
        case Mapping():
            inner = ", ".join(f"{name} = {_toml(one)}" for name, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return str(value)


def field_of(name: str, written: str) -> FormField:
    """Read a field of a question from its short form. A question has no roles.

    Raises:
        InvalidInputError: The name or the short form is invalid.
    """
    try:
        field = FormField.model_validate({"name": name, **read_field(written)})
    except ValueError:
        field = None
    if field is None or field.role is not None:
        kinds = "write yes/no, number, 1..10, this|that, member or text"
        raise InvalidInputError(f"The field {name[:64]!r} cannot be {written!r}: {kinds}; a name begins with a letter a-z.")
    return field


def _read(given: object) -> object:
    return given if isinstance(given, TeamSpec) else team_of(given)


TeamField = Annotated[TeamSpec, BeforeValidator(_read), PlainSerializer(document_of)]
"""A team inside other data, in the form of a team file."""
