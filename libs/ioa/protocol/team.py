"""Team files: a policy, and who fills its roles. What is written by hand is read with shorthands; written back it reads the same.

Reading answers with all that is wrong at once, each at its innermost place. Parts that are designed and not built are told as such.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, ValidationError, model_validator
from pydantic.functional_validators import BeforeValidator

from ioa.errors import InvalidInputError
from ioa.protocol.codec import check_texts, in_words, why_of
from ioa.protocol.ids import AgentIdField
from ioa.protocol.policy import (
    END,
    MAX_ROLES,
    Condition,
    Exit,
    FormField,
    Name,
    Node,
    Opening,
    Policy,
    PolicyPart,
    Removal,
    Role,
    Turns,
    Whole,
)
from ioa.protocol.policy_check import MAX_TOLD_BYTES, Finding, check, listed, nearest, told_bytes

MAX_TURNS = 100
"""How many turns a team has whose file does not say."""
_MAX_GOAL_CHARS = 32_000
_MAX_NEED_CHARS = 4_000


class Filling(PolicyPart):
    """How a role is filled.

    Attributes:
        agents: Who holds it: ids of agents, or pools, of which a replica is taken that is not busy.
        need: What its holders must be able to do, in words, for discovery; instead of `agents`.
        count: How many hold it, if it is one pool or a need.
    """

    role: Name
    agents: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_ROLES)] = ()
    need: Annotated[str, Field(max_length=_MAX_NEED_CHARS)] = ""
    count: Annotated[int, Field(strict=True, ge=1, le=MAX_ROLES)] = 1

    @model_validator(mode="after")
    def _is_filled_one_way(self) -> Filling:
        if bool(self.agents) == bool(self.need):
            raise ValueError("say who fills it: `agent`, `agents` or `need`")
        if self.count > 1 and len(self.agents) > 1:
            raise ValueError("`count` goes with one `agent`, a pool, or with a `need`")
        return self


class TeamSpec(PolicyPart):
    """A team: its policy, and who fills the roles.

    Attributes:
        team: What it is called.
        goal: What it works at if nothing else is said.
        fillings: One for each role, in their order.
    """

    team: Annotated[str, Field(min_length=1, max_length=64)]
    goal: Annotated[str, Field(max_length=_MAX_GOAL_CHARS)] = ""
    max_turns: Whole = MAX_TURNS
    policy: Policy
    fillings: tuple[Filling, ...]

    @property
    def leader(self) -> Filling:
        """Who leads: the filling of the leading role, else of the first one."""
        return next((one for one in self.fillings if one.role == self.policy.leader), self.fillings[0])


class TeamError(InvalidInputError):
    """A team file that cannot be used.

    Attributes:
        findings: All that is wrong with it.
    """

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(map(str, findings)), hint="`ioa team check FILE` tells each on a line of its own.")
        self.findings = findings


_TOP = ("team", "goal", "max_turns", "version", "leader", "ends", "seed", "silent", "roles", "nodes")
_OF_ROLE = ("agent", "agents", "need", "count", *(name for name in Role.model_fields if name != "name"))
_OF_NODE = (*Node.model_fields, "then")
_LATER: Mapping[str, frozenset[str]] = {
    "top": frozenset({"heard_by", "watchers"}),
    "role": frozenset({"human", "secret", "hears_all", "silent", "memory"}),
    "node": frozenset({"heard_by", "join", "take", "review", "guards", "writes", "tasks", "asks", "invites"}),
    "when": frozenset({"says"}),
}
"""Parts of policies that are designed and that this release does not know yet."""


def later_parts() -> Mapping[str, tuple[str, ...]]:
    """Name the parts of policies that this release does not know yet, by where they stand."""
    return {"top of the file" if where == "top" else where: tuple(sorted(names)) for where, names in _LATER.items()}


def read_toml(text: str) -> TeamSpec:
    """Read a team file.

    Raises:
        InvalidInputError: It is no TOML; a `TeamError` if it is no team.
    """
    try:
        return team_of(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInputError(f"This is no TOML: {error}.") from None


def read_json(text: str) -> TeamSpec:
    """Read a team that is written as JSON, in the same form as a team file.

    Raises:
        InvalidInputError: It is no JSON; a `TeamError` if it is no team.
    """
    try:
        return team_of(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(f"This is no JSON: {error}.") from None


def team_of(document: object) -> TeamSpec:
    """Read a team off plain data, with shorthands, and check it.

    Raises:
        TeamError: It says all that is wrong.
    """
    reading = _Reading()
    team = reading.team(document)
    if reading.findings or team is None:
        raise TeamError(tuple(reading.findings))
    errors = tuple(one for one in check(team.policy) if one.kind == "error") or _of_size(team)
    if errors:
        raise TeamError(errors)
    return team


def _of_size(team: TeamSpec) -> tuple[Finding, ...]:
    holders = {one.role: max(one.count, len(one.agents)) for one in team.fillings}
    size = told_bytes(team.policy, holders)
    if size <= MAX_TOLD_BYTES:
        return ()
    what = f"what members fill in may take {size:,} bytes of the state, and {MAX_TOLD_BYTES:,} are the most: test fewer texts"
    return (Finding("error", "", what),)


def document_of(team: TeamSpec) -> dict[str, Any]:
    """Return a team as plain data that reads back to the same; what is as by default is left out."""
    policy = team.policy.model_dump(mode="json", exclude_defaults=True)
    roles = {}
    for role, filling in zip(policy.pop("roles"), team.fillings, strict=True):
        told = filling.model_dump(mode="json", exclude_defaults=True, exclude={"role"})
        if len(filling.agents) == 1:
            told = {"agent": told.pop("agents")[0], **told}
        name = role.pop("name")
        roles[name] = {**told, **role}
    nodes = [_node_document(node) for node in policy.pop("nodes")]
    top = team.model_dump(mode="json", exclude_defaults=True, exclude={"policy", "fillings"})
    return {**top, **policy, "roles": roles, "nodes": nodes}


def to_toml(team: TeamSpec) -> str:
    """Write a team file."""
    document = document_of(team)
    roles, nodes = document.pop("roles"), document.pop("nodes")
    lines = [f"{name} = {_toml(value)}" for name, value in document.items()]
    lines += ["", "[roles]", *(f"{name} = {_toml(value)}" for name, value in roles.items())]
    for node in nodes:
        lines += ["", "[[nodes]]", *(f"{name} = {_toml(value)}" for name, value in node.items())]
    return "\n".join(lines) + "\n"


def _read(given: object) -> object:
    return given if isinstance(given, TeamSpec) else team_of(given)


TeamField = Annotated[TeamSpec, BeforeValidator(_read), PlainSerializer(document_of)]
"""A team inside other data, in the form of a team file."""


def _node_document(node: dict[str, Any]) -> dict[str, Any]:
    exits = node.pop("exits", [])
    if exits and all(one.keys() == {"to"} for one in exits):
        targets = [one["to"] for one in exits]
        node["then"] = targets[0] if len(targets) == 1 else targets
    elif exits:
        node["exits"] = exits
    else:
        node["exits"] = []
    if node.get("turns", {}).keys() == {"mode"}:
        node["turns"] = node["turns"]["mode"]
    if "form" in node:
        node["form"] = {one.pop("name"): _field_document(one) for one in node["form"]}
    return node


_NUMBER = re.compile(r"(-?\d+)\.\.(-?\d+)")
_PLAIN: Mapping[str, str] = {"text": "text", "number": "number", "yes/no": "yes_no", "member": "member"}


def _field(written: str) -> dict[str, Any]:
    """Read a field off its shorthand: `text`, `number`, `1..10`, `yes/no`, `this|that`, a role, `member`; with `?` it may lack."""
    what = written.removesuffix("?")
    told: dict[str, Any] = {"required": False} if what != written else {}
    if what in _PLAIN:
        return {"kind": _PLAIN[what], **told}
    if bounds := _NUMBER.fullmatch(what):
        return {"kind": "number", "lowest": int(bounds[1]), "highest": int(bounds[2]), **told}
    if "|" in what:
        return {"kind": "option", "options": what.split("|"), **told}
    return {"kind": "member", "role": what, **told}


def field_of(name: str, written: str) -> FormField:
    """Read a field of a form, or of a question, off its shorthand.

    Raises:
        InvalidInputError: It says what is wrong.
    """
    try:
        return FormField.model_validate({"name": name, **_field(written)})
    except ValidationError as error:
        raise InvalidInputError(f"The field {name}: {in_words(error, 'field')}.") from None


def _field_document(field: dict[str, Any]) -> object:
    """Write a field as its shorthand, if that reads back to the same."""
    bounds = f"{field.get('lowest')}..{field.get('highest')}"
    words = {value: name for name, value in _PLAIN.items()}
    what = {"number": bounds, "option": "|".join(field.get("options", ())), "member": field.get("role", "")}
    written = [words.get(field.get("kind", "text"), ""), what.get(field.get("kind", "text"), "")]
    for one in [f"{word}{'?' if field.get('required') is False else ''}" for word in written if word]:
        if _field(one) == {"kind": "text", **field}:
            return one
    return field


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


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


class _Reading:
    """One reading of a document; it goes on after an error, so that all of them are told."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def team(self, document: object) -> TeamSpec | None:
        if not isinstance(document, Mapping):
            self._wrong("", "a team is a table with `team`, `roles` and `nodes`")
            return None
        try:
            check_texts(document, "team")
        except (InvalidInputError, RecursionError) as error:
            self._wrong("", str(error))
            return None
        self._keys("", document, _TOP, "top")
        roles, nodes = document.get("roles"), document.get("nodes")
        if document.get("version", 1) != 1:
            self._wrong("", f"version {document['version']!r} of policies is not yet known; this release runs version 1")
        if not isinstance(roles, Mapping) or not roles:
            self._wrong("", "`roles` is missing: a table with who plays which part")
            roles = {}
        if not isinstance(nodes, list | tuple) or not nodes:
            self._wrong("", "`nodes` is missing: a list of the stretches of the discussion")
            nodes = ()
        parts = [self._role(str(name), given) for name, given in roles.items()]
        policy = {name: document[name] for name in ("version", "leader", "ends", "seed", "silent") if name in document}
        policy["nodes"] = [self._node(number, node) for number, node in enumerate(nodes, 1)]
        policy["roles"] = [role for role, _ in parts]
        told = {name: document[name] for name in ("team", "goal", "max_turns") if name in document}
        if "team" not in told:
            self._wrong("", "`team` is missing: what the team is called")
        if self.findings:
            return None
        try:
            return TeamSpec.model_validate({**told, "policy": policy, "fillings": [filling for _, filling in parts]})
        except ValidationError as error:
            self._told_by_pydantic(error, list(roles), policy["nodes"])
            return None

    def _role(self, name: str, given: object) -> tuple[dict[str, Any], dict[str, Any]]:
        where = f"role {name}"
        if isinstance(given, str):
            given = {"agent": given}
        if not isinstance(given, Mapping):
            self._wrong(where, "is neither the name of an agent nor a table")
            return {}, {}
        self._keys(where, given, _OF_ROLE, "role")
        filling = {"role": name, **{key: given[key] for key in ("agents", "need", "count") if key in given}}
        if "agent" in given:
            if "agents" in given:
                self._wrong(where, "has both `agent` and `agents`; name them all in `agents`")
            filling["agents"] = [given["agent"]]
        return {"name": name, **{key: given[key] for key in Role.model_fields if key in given and key != "name"}}, filling

    def _node(self, number: int, given: object) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            self._wrong(f"node {number}", "is no table")
            return {}
        where = f"node {given.get('name', number)}"
        if "name" not in given:
            self._wrong(where, "`name` is missing")
        if "roles" not in given:
            self._wrong(where, "`roles` is missing: who speaks in it")
        self._keys(where, given, _OF_NODE, "node")
        node = {key: value for key, value in given.items() if key in Node.model_fields}
        node["exits"] = self._exits(where, given)
        if "turns" in given:
            node["turns"] = self._turns(where, given["turns"])
        if isinstance(form := given.get("form"), Mapping):
            node["form"] = [self._field(where, str(name), one) for name, one in form.items()]
        if isinstance(opens := given.get("opens"), Mapping):
            self._keys(where, opens, Opening.model_fields, "opens")
        return node

    def _field(self, where: str, name: str, given: object) -> dict[str, Any]:
        if isinstance(given, str):
            return {"name": name, **_field(given)}
        if not isinstance(given, Mapping):
            self._wrong(where, f"form.{name}: is neither a text such as `yes/no` nor a table")
            return {"name": name}
        self._keys(where, given, [one for one in FormField.model_fields if one != "name"], "form")
        return {**given, "name": name}

    def _turns(self, where: str, given: object) -> object:
        if isinstance(given, str):
            given = {"mode": given}
        if isinstance(given, Mapping):
            self._keys(where, given, Turns.model_fields, "turns")
        return given

    def _exits(self, where: str, given: Mapping[str, Any]) -> list[object]:
        if "then" in given and "exits" in given:
            self._wrong(where, "has both `then` and `exits`; `then` is short for exits without a condition")
        then = given.get("then", [] if "exits" in given else [END])
        exits: list[object] = [
            {"to": to} for to in ([then] if isinstance(then, str) else then if isinstance(then, list) else [then])
        ]
        named = given.get("exits", [])
        for way in named if isinstance(named, list | tuple) else [named]:
            if isinstance(way, Mapping):
                self._keys(where, way, Exit.model_fields, "exit")
                if isinstance(remove := way.get("remove"), Mapping):
                    self._keys(where, remove, Removal.model_fields, "remove")
                if isinstance(when := way.get("when"), Mapping):
                    self._keys(where, when, Condition.model_fields, "when")
            exits.append(way)
        return exits

    def _keys(self, where: str, given: Mapping[Any, Any], known: Iterable[str], part: str) -> None:
        known, later = list(known), _LATER.get(part, frozenset())
        for key in map(str, given):
            if key in later and key not in known:
                self._later(where, f"`{key}`")
            elif key not in known:
                meant = nearest(key, [*known, *later])
                self._wrong(where, f"there is no `{key}`{meant or f'; there are {listed(known)}'}")

    def _later(self, where: str, what: str) -> None:
        self._wrong(where, f"{what} is not yet known: this release runs policies without it")

    def _wrong(self, where: str, what: str) -> None:
        self.findings.append(Finding("error", where, what))

    def _told_by_pydantic(self, error: ValidationError, roles: list[str], nodes: list[dict[str, Any]]) -> None:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        places = [one["loc"] for one in found]
        for one in found:
            if any(len(place) > len(one["loc"]) and place[: len(one["loc"])] == one["loc"] for place in places):
                continue  # it is wrong since something in it is
            where, field = _place(list(one["loc"]), roles, nodes)
            why = why_of(one)
            if one["type"] == "string_pattern_mismatch":
                why = "a name is 1 to 32 of a-z 0-9 _ -, beginning with a letter"
            self._wrong(where, f"{field}: {why}" if field else why)


def _place(loc: list[int | str], roles: list[str], nodes: list[dict[str, Any]]) -> tuple[str, str]:
    """Say in the words of the file where something stands that is wrong."""
    where = ""
    match loc:
        case ["policy", "roles", int(number), *rest] | ["fillings", int(number), *rest]:
            where, loc = f"role {roles[number]}", rest
        case ["policy", "nodes", int(number), *rest]:
            where, loc = f"node {nodes[number].get('name', number + 1)}", rest
        case ["policy", *rest]:
            loc = rest
    return where, ".".join(_words(loc))


def _words(loc: Iterable[int | str]) -> Iterator[str]:
    for one in loc:
        yield str(one + 1) if isinstance(one, int) else one
