"""Team files: a policy, and who fills its roles. What is written by hand is read with shorthands; written back it reads the same.

Reading answers with all that is wrong at once, each at its innermost place.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, cast, get_args

from pydantic import Field, PlainSerializer, ValidationError, model_validator
from pydantic.functional_validators import BeforeValidator
from pydantic_core import ErrorDetails

from ioa.errors import InvalidInputError
from ioa.json_text import values_in
from ioa.protocol.codec import decode_value, encode_value
from ioa.protocol.ids import AgentId, AgentIdField
from ioa.protocol.policy import (
    END,
    MAX_FIELD_CHARS,
    MAX_NODES,
    MAX_ROLES,
    NAME,
    Condition,
    Exit,
    FormField,
    Guard,
    Hearing,
    Memory,
    Name,
    Node,
    Opening,
    Policy,
    PolicyPart,
    Removal,
    Review,
    Role,
    Turns,
    Watcher,
    Whole,
)
from ioa.protocol.policy_check import (
    MAX_STATE_BYTES,
    MOST_FINDINGS,
    SHORT_FORMS,
    PolicyFinding,
    errors_of,
    errors_of_names,
    listed,
    nearest,
    state_bytes,
)
from ioa.protocol.texts import check_texts
from ioa.protocol.validation_errors import why_of

MAX_TURNS = 100
"""How many turns a team has whose file does not say."""
MAX_GOAL_CHARS = 32_000
MAX_NEED_CHARS = 4_000
MAX_VALUES = 20_000
"""What a team file may hold, so that it is read in a moment."""
_LEAST_READINGS = 2
"""How often one is read at least to find what else is wrong with it; small ones until all is found."""


class Filling(PolicyPart):
    """How a role is filled.

    Attributes:
        agents: Who holds it: ids of agents, or pools, of which a replica is taken that is not busy.
        need: What its holders must be able to do, in words, for discovery; instead of `agents`.
        count: How many hold it, if it is one pool or a need.
    """

    role: Name
    agents: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_ROLES)] = ()
    need: Annotated[str, Field(max_length=MAX_NEED_CHARS)] = ""
    count: Annotated[int, Field(strict=True, ge=1, le=MAX_ROLES)] = 1

    @property
    def names(self) -> tuple[AgentId, ...]:
        """What its holders are called before anybody is cast: as its agents if there are several, else as the role."""
        if len(self.agents) > 1:
            return self.agents
        if self.count > 1:
            return tuple([AgentId(f"{self.role}-{number}") for number in range(1, self.count + 1)])
        return (AgentId(self.role),)

    @model_validator(mode="after")
    def _is_filled_one_way(self) -> Filling:
        if self.agents and self.need:
            raise ValueError("only one of `agents` and `need` says who fills it")
        if not self.agents and not self.need:
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
    goal: Annotated[str, Field(max_length=MAX_GOAL_CHARS)] = ""
    max_turns: Whole = MAX_TURNS
    policy: Policy
    fillings: tuple[Filling, ...]

    @property
    def leader(self) -> Filling:
        """Who opens the group: the filling of the leading role, or if a person holds that, of the first one that agents hold."""
        able = [filling for filling, role in zip(self.fillings, self.policy.roles, strict=True) if not role.human]
        return next((one for one in able if one.role == self.policy.leader), able[0])


_SEAT = "human-"


def seat_of(person: str) -> AgentId:
    """Return the id under which a person takes part."""
    return AgentId(f"{_SEAT}{person}")


def is_seat(agent_id: AgentId) -> bool:
    """Whether an agent's id is that of a person's seat."""
    return agent_id.startswith(_SEAT)


def person_of(seat: AgentId) -> str:
    """Return whose seat it is."""
    return seat.removeprefix(_SEAT)


class TeamError(InvalidInputError):
    """A team file that cannot be used.

    Attributes:
        findings: All that is wrong with it.
    """

    def __init__(self, findings: tuple[PolicyFinding, ...]) -> None:
        super().__init__("; ".join(map(str, findings)), hint="`ioa team check FILE` tells each on a line of its own.")
        self.findings = findings


HEARD_BY = "it is a role, `all`, `node`, `leader`, a list of roles, or a table: for roles that speak here who hears them"
"""How who hears a node may be written."""

_TOP = ("team", "goal", "max_turns", "leader", "ends", "seed", "silent", "heard_by", "watchers", "roles", "nodes")
_OF_ROLE = ("agent", "agents", "need", "count", *(name for name in Role.model_fields if name != "name"))
_OF_NODE = (*Node.model_fields, "then")


def read_toml(text: str) -> TeamSpec:
    """Read a team file.

    Raises:
        InvalidInputError: It is no TOML; a `TeamError` if it is no team.
    """
    try:
        return team_of(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # also of a number with thousands of digits
        raise InvalidInputError(f"This is no TOML: {error}.") from None


def read_json(text: str) -> TeamSpec:
    """Read a team that is written as JSON, in the same form as a team file.

    Raises:
        InvalidInputError: It is no JSON; a `TeamError` if it is no team.
    """
    try:
        return team_of(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"This is no JSON: {error}.") from None


def team_of(document: object) -> TeamSpec:
    """Read a team off plain data, with shorthands, and check it.

    A goal has its team read wherever it is taken in, launched, led and listed, so that teams that were read lately are remembered.

    Raises:
        TeamError: It says all that is wrong.
    """
    try:
        written = encode_value(document)
    except (TypeError, ValueError, OverflowError):  # such as a time of TOML, which has to be told
        return _team_of(document)
    return _written_team(written)


@lru_cache(maxsize=16)
def _written_team(written: bytes) -> TeamSpec:
    return _team_of(decode_value(written))


def _team_of(document: object) -> TeamSpec:
    reading = _Reading()
    try:
        team = reading.team(document)
    except _EnoughError:
        team = None
    if reading.findings or team is None:
        raise TeamError(tuple(dict.fromkeys((*reading.findings, *reading.of_names(team)))))
    errors = errors_of(team.policy) or _of_size(team)
    if errors:
        raise TeamError(errors)
    return team


def _of_size(team: TeamSpec) -> tuple[PolicyFinding, ...]:
    holders = {one.role: len(one.names) for one in team.fillings}
    size = state_bytes(team.policy, holders)
    if size <= MAX_STATE_BYTES:
        return ()
    what = f"the state may reach {size:,} bytes, and {MAX_STATE_BYTES:,} are the most: test fewer texts, or write fewer things"
    return (PolicyFinding("error", "", what),)


def document_of(team: TeamSpec) -> dict[str, Any]:
    """Return a team as plain data that reads back to the same; what is as by default is left out."""
    policy = team.policy.model_dump(mode="json", exclude_defaults=True)
    roles = {}
    for role, filling in zip(policy.pop("roles"), team.fillings, strict=True):
        told = filling.model_dump(mode="json", exclude_defaults=True, exclude={"role"})
        if len(filling.agents) == 1:
            told = {"agent": told.pop("agents")[0], **told}
        name = role.pop("name")
        if role.pop("human", False):
            person = str(told.pop("agent")).removeprefix(_SEAT)
            told["human"] = True if person == name else person
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


_NAME = re.compile(NAME)
_NUMBER = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})")
_PLAIN: Mapping[str, str] = {"text": "text", "number": "number", "yes/no": "yes_no", "member": "member"}


def _field(written: str) -> dict[str, Any]:
    """Read a field off its shorthand: `text`, `number`, `1..10`, `yes/no`, `this|that`, a role, `member`; with `?` it may lack."""
    written = written.strip()
    what = written.removesuffix("?").rstrip()
    told: dict[str, Any] = {"required": False} if what != written else {}
    if what in _PLAIN:
        return {"kind": _PLAIN[what], **told}
    if bounds := _NUMBER.fullmatch(what):
        return {"kind": "number", "lowest": int(bounds[1]), "highest": int(bounds[2]), **told}
    if "|" in what:
        return {"kind": "option", "options": what.split("|"), **told}
    return {"kind": "member", "role": what, **told}


def field_of(name: str, written: str) -> FormField:
    """Read a field of a question from its shorthand. A question has no roles.

    Raises:
        InvalidInputError: The name or the shorthand is invalid.
    """
    field = _field(written)
    if "role" in field:
        raise InvalidInputError(f"The field {name} cannot be {written!r}: write yes/no, number, 1..10, this|that, member or text.")
    try:
        return FormField.model_validate({"name": name, **field})
    except ValidationError as error:
        told = dict.fromkeys(_in_words(one, f"`{one['loc'][0]}`") for one in cast(list[dict[str, Any]], error.errors()))
        raise InvalidInputError(f"The field {name}: {'; '.join(told)}.") from None


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


class _EnoughError(Exception):
    """So much is wrong that no more is looked for."""


class _Reading:
    """One reading of a document; it goes on after an error, so that all of them are told.

    What is wrong is told, and left out of what is read on, so that nothing else is said of it.
    """

    def __init__(self) -> None:
        self.findings: list[PolicyFinding] = []
        self._roles: list[str] = []
        self._no_names: set[str] = set()
        self._is_whole = True

    def team(self, document: object) -> TeamSpec | None:
        """Read a team; None if so much is wrong that what is left makes none."""
        if not isinstance(document, Mapping):
            self._wrong("", "a team is a table with `team`, `roles` and `nodes`")
            return None
        if (values := 1 + values_in(document, MAX_VALUES - 1)) > MAX_VALUES:
            self._wrong("", f"it has more than {MAX_VALUES:,} values, counting each list and table as one, too")
            return None
        try:
            check_texts(document, "team")
        except (InvalidInputError, RecursionError) as error:
            self._wrong("", str(error))
            return None
        self._keys("", document, _TOP)
        roles, nodes = document.get("roles"), document.get("nodes")
        if not isinstance(roles, Mapping) or not roles:
            self._lacks("roles", roles, "a table with who plays which part, under `[roles]`")
            roles = {"nobody": "nobody"}
        if self._has_too_many("roles", roles, MAX_ROLES) or self._has_too_many("nodes", nodes, MAX_NODES):
            return None
        self._roles = [str(name) for name in roles]
        if not isinstance(nodes, list | tuple) or not nodes:
            self._lacks("nodes", nodes, "a list of the stretches of the discussion, each under `[[nodes]]`")
            nodes = ({"name": "nothing", "roles": self._roles},)
        if "team" not in document:
            self._wrong("", "`team` is missing: what the team is called")
        parts = [self._role(str(name), given) for name, given in roles.items()]
        policy = {name: document[name] for name in ("leader", "ends", "seed", "silent", "heard_by") if name in document}
        policy["nodes"] = [self._node(number, node) for number, node in enumerate(nodes, 1)]
        if "watchers" in document:
            policy["watchers"] = self._watchers(document["watchers"])
        policy["roles"] = [role for role, _ in parts]
        told = {"team": "team", **{name: document[name] for name in ("team", "goal", "max_turns") if name in document}}
        readings = max(_LEAST_READINGS, min(MOST_FINDINGS, MAX_VALUES // values))
        return self._validated({**told, "policy": policy, "fillings": [filling for _, filling in parts]}, readings)

    def of_names(self, team: TeamSpec | None) -> Iterator[PolicyFinding]:
        """Say what else is wrong with what could be read; names that are none have been told."""
        if team is None or not self._is_whole:
            return
        told = [repr(name) for name in self._no_names if len(name) <= _LONGEST_KEY]
        for one in islice(errors_of_names(team.policy), MOST_FINDINGS):
            if not any(name in one.what for name in told):
                what = one.what
                for read, role in zip(self._roles, team.policy.roles, strict=True):
                    what = what if read == role.name else what.replace(role.name, _called(read))
                yield one._replace(what=what)

    def _has_too_many(self, name: str, given: object, most: int) -> bool:
        is_so = isinstance(given, Mapping | list | tuple) and len(given) > most
        if is_so:
            self._wrong("", f"`{name}` has more than {most} parts")
        return is_so

    def _lacks(self, name: str, given: object, what: str) -> None:
        self._is_whole = False
        lead = "is missing" if given is None else "is empty" if given in ({}, [], ()) else f"is {_cut(given)}"
        self._wrong("", f"`{name}` {lead}: it is {what}")

    def _role(self, name: str, given: object) -> tuple[dict[str, Any], dict[str, Any]]:
        where = f"role {_called(name)}"
        if isinstance(given, str):
            given = {"agent": given}
        if not isinstance(given, Mapping):
            self._wrong(where, "is neither the name of an agent nor a table")
            given = {"agent": "nobody"}
        told = self._keys(where, given, _OF_ROLE)
        if isinstance(memory := told.get("memory"), Mapping):
            told["memory"] = self._keys(where, memory, Memory.model_fields)
        filling: dict[str, Any] = {"role": name, **{key: told[key] for key in ("agents", "need", "count") if key in told}}
        named: list[str] = [key for key in ("agent", "agents", "need") if key in told]
        if told.get("human") not in (None, False):
            named.append("human")
            if told["human"] == "":
                self._wrong(where, "`human` is empty: it is true, or whose seat it is")
            if told.get("count", 1) != 1:
                self._wrong(where, "`count` goes with agents: a person has one seat, so give each person a role")
                filling["count"] = 1
            filling["agents"] = [seat_of(name if told["human"] is True else str(told["human"]))]
            told["human"] = told["human"] if not isinstance(told["human"], str) else True
        if len(named) > 1:
            self._wrong(where, f"has {' and '.join(f'`{key}`' for key in named)}; only one of them says who fills it")
            filling = {"role": name, "agents": ["nobody"]}
        elif named == ["agent"]:
            filling["agents"] = [told["agent"]]
        return {"name": name, **{key: told[key] for key in Role.model_fields if key in told and key != "name"}}, filling

    def _node(self, number: int, given: object) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            self._wrong(f"node {number}", "is no table")
            return {"name": f"node-{number}", "roles": self._roles}
        where = f"node {_called(given.get('name'), number)}"
        if "name" not in given:
            self._wrong(where, "`name` is missing")
        if "roles" not in given:
            self._wrong(where, "`roles` is missing: who speaks in it")
        given = self._keys(where, given, _OF_NODE)
        node: dict[str, Any] = {"name": f"node-{number}", "roles": self._roles, **given, "exits": self._exits(where, given)}
        node.pop("then", None)
        if "turns" in given:
            node["turns"] = self._turns(where, given["turns"])
        if isinstance(form := given.get("form"), Mapping):
            node["form"] = []
            for name, one in form.items():
                before = len(self.findings)
                node["form"].append(self._field(where, str(name), one))
                if len(self.findings) > before:
                    _leave_out_field(node, -1)
        if "heard_by" in given:
            node["heard_by"] = self._heard_by(where, given["heard_by"])
        if isinstance(opens := given.get("opens"), Mapping):
            node["opens"] = self._keys(where, opens, Opening.model_fields)
        return {**node, **self._feedback(where, given)}

    def _feedback(self, where: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Read the guards of a node, and who reviews what is said in it."""
        feedback: dict[str, Any] = {"review": self._review(where, given["review"])} if "review" in given else {}
        if isinstance(guards := given.get("guards"), list | tuple):
            feedback["guards"] = [self._guard(where, guard) for guard in guards]
        return feedback

    def _watchers(self, given: object) -> object:
        """Read who watches; what a list holds alone may stand without its brackets."""
        if not isinstance(given, list | tuple):
            return given
        watchers: list[object] = []
        for number, one in enumerate(given, 1):
            if isinstance(one, Mapping):
                told = self._keys(f"watcher {number}", one, Watcher.model_fields)
                one = {name: (it,) if name in ("may", "go") and isinstance(it, str) else it for name, it in told.items()}
            watchers.append(one)
        return watchers

    def _review(self, where: str, given: object) -> object:
        """Read who reviews; in short a role alone."""
        if isinstance(given, str):
            given = {"by": given}
        return self._keys(where, given, Review.model_fields) if isinstance(given, Mapping) else given

    def _guard(self, where: str, given: object) -> object:
        """Read a guard; in short `"not_empty"`, `{ longest = 500 }` or `{ without = ["apple"] }`."""
        if isinstance(given, str):
            given = {"kind": given}
        if not isinstance(given, Mapping):
            return given
        for kind, field in (("longest", "most"), ("without", "words")):
            if given.keys() == {kind}:
                given = {"kind": kind, field: given[kind]}
        return self._keys(where, given, Guard.model_fields)

    def _field(self, where: str, name: str, given: object) -> dict[str, Any]:
        if isinstance(given, str):
            field = _field(given)
            role = field.get("role")
            if role is not None and role not in self._roles and not _NAME.fullmatch(role):
                self._wrong(where, f"the field {_called(name)!r} cannot be {_cut(given)}; it may be {SHORT_FORMS}")
            return {"name": name, **field}
        if not isinstance(given, Mapping):
            self._wrong(where, f"the field {_called(name)!r} cannot be {_cut(given)}; it may be a table, or {SHORT_FORMS}")
            return {"name": name}
        return {**self._keys(where, given, [one for one in FormField.model_fields if one != "name"]), "name": name}

    def _heard_by(self, where: str, given: object) -> object:
        """Read who hears a node: in short a role alone, also of each role that speaks."""
        if isinstance(given, str):
            return given if given in get_args(Hearing) and given not in self._roles else (given,)
        if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
            return given
        if isinstance(given, Mapping):
            lists = {str(role): (one,) if isinstance(one, str) else one for role, one in given.items()}
            if all(isinstance(one, list | tuple) and all(isinstance(name, str) for name in one) for one in lists.values()):
                return lists
        self._wrong(where, f"`heard_by` cannot be {_cut(given)}; {HEARD_BY}")
        return None

    def _turns(self, where: str, given: object) -> object:
        if isinstance(given, str):
            given = {"mode": given}
        return self._keys(where, given, Turns.model_fields) if isinstance(given, Mapping) else given

    def _exits(self, where: str, given: Mapping[str, Any]) -> list[object]:
        if "then" in given and "exits" in given:
            self._wrong(where, "has both `then` and `exits`; `then` is short for exits without a condition")
        then = given.get("then", [] if "exits" in given else [END])
        exits: list[object] = [
            {"to": to} for to in ([then] if isinstance(then, str) else then if isinstance(then, list) else [then])
        ]
        named = given.get("exits", [])
        ways = named if isinstance(named, list | tuple) else [named]
        return [*exits, *(self._exit(where, way) if isinstance(way, Mapping) else way for way in ways)]

    def _exit(self, where: str, given: Mapping[str, Any]) -> dict[str, Any]:
        way = self._keys(where, given, Exit.model_fields)
        if isinstance(remove := way.get("remove"), Mapping):
            way["remove"] = self._keys(where, remove, Removal.model_fields)
        if isinstance(when := way.get("when"), Mapping):
            way["when"] = self._keys(where, when, Condition.model_fields)
            if when and not way["when"]:
                del way["when"]
        return way

    def _keys(self, where: str, given: Mapping[Any, Any], known: Iterable[str]) -> dict[str, Any]:
        """Tell which keys there are not, and return the others."""
        known = list(known)
        for key in islice((key for key in map(str, given) if key not in known), MOST_FINDINGS):
            self._wrong(where, f"there is no `{key[:_LONGEST_KEY]}`{nearest(key, known) or f'; there are {listed(known)}'}")
        return {key: value for key, value in given.items() if key in known}

    def _wrong(self, where: str, what: str) -> None:
        finding = PolicyFinding("error", where, what[:_LONGEST_FINDING])
        if finding not in self.findings:
            self.findings.append(finding)
        if len(self.findings) == MOST_FINDINGS:
            raise _EnoughError

    def _validated(self, data: dict[str, Any], readings: int) -> TeamSpec | None:
        """Tell what is of the wrong kind, and read on without it: it hides what is wrong around it, and behind it in a list.

        Each reading is one of all that is there, so that of a large file fewer mistakes are told at once.
        """
        for _ in range(readings):
            try:
                return TeamSpec.model_validate(data)
            except ValidationError as error:
                found = _innermost(cast(list[dict[str, Any]], error.errors(include_url=False)))
                policy = data["policy"]
                self._no_names |= {one["input"] for one in found if _is_of_a_name(one["loc"]) and isinstance(one["input"], str)}
                nodes = [_called(node["name"], number) for number, node in enumerate(policy["nodes"], 1)]
                for one in found:
                    self._tell(one, nodes, policy)
                for place in dict.fromkeys(one["loc"] for one in found):
                    if not _leave_out(data, list(place)):
                        return None
        return None

    def _tell(self, error: Mapping[str, Any], nodes: Sequence[str], policy: Mapping[str, Any]) -> None:
        loc = list(error["loc"])
        named = error["type"] == "string_pattern_mismatch" and error["input"] in self._no_names and not _is_of_a_name(loc)
        if named or (loc[0] == "fillings" and loc[-1] == "role"):
            return  # it is told where it is given that name
        where = ""
        match loc:
            case ["policy", "roles", int(number), *rest] | ["fillings", int(number), *rest]:
                where, loc = f"role {_called(self._roles[number])}", rest
            case ["policy", "nodes", int(number), "form", int(field), *rest]:
                name = _name_of(policy["nodes"][number]["form"], field)
                called = name[:_LONGEST_KEY] if isinstance(name, str) else field + 1
                where, loc = f"node {nodes[number]}", [*rest, f"the field {called!r}"]
            case ["policy", "nodes", int(number), *rest]:
                where, loc = f"node {nodes[number]}", rest
            case ["policy", "watchers", int(number), *rest]:
                where, loc = f"watcher {number + 1}", rest
            case ["policy", *rest]:
                loc = rest
        self._wrong(where, _in_words(error, _subject(loc)))


_LONGEST_KEY = 64
_LONGEST_FINDING = 1_000
"""How much is told of a mistake."""


def _called(name: object, number: int | None = None) -> str:
    """Return by what something is called in what is told: the beginning of its name, or its number if it has none."""
    return name[:_LONGEST_KEY] if isinstance(name, str) else str(name) if isinstance(name, int) else str(number)


def _innermost(errors: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what is wrong only since something in it is."""
    places = [one["loc"] for one in errors]
    return [
        one
        for one in errors
        if not any(len(place) > len(one["loc"]) and place[: len(one["loc"])] == one["loc"] for place in places)
    ]


def _is_of_a_name(loc: Sequence[int | str]) -> bool:
    """Whether something stands where a role or a node is given its name."""
    return len(loc) == 4 and loc[0] == "policy" and loc[1] in ("roles", "nodes") and loc[3] == "name"


def _leave_out(data: dict[str, Any], loc: list[Any]) -> bool:  # noqa: C901 - a case for each place
    """Put what is right in the place of what is wrong; False if that cannot be."""
    policy = data["policy"]
    match loc:
        case ["policy", "roles", int(number), "name"]:
            policy["roles"][number]["name"] = data["fillings"][number]["role"] = f"role-{number + 1}"
        case ["policy", "roles", int(number), str(name), *_]:
            policy["roles"][number].pop(name, None)
        case ["fillings", int(number), *rest]:
            if rest != ["role"]:
                data["fillings"][number] = {"role": policy["roles"][number]["name"], "agents": ["nobody"]}
        case ["policy", "nodes", int(number), "name"]:
            policy["nodes"][number]["name"] = f"node-{number + 1}"
        case ["policy", "nodes", int(number), "roles", *_]:
            policy["nodes"][number]["roles"] = [role["name"] for role in policy["roles"]]
        case ["policy", "nodes", int(number), "exits", int(way), *_]:
            policy["nodes"][number]["exits"][way] = {"to": END}
        case ["policy", "nodes", int(number), "form", int(field), *_]:
            _leave_out_field(policy["nodes"][number], field)
        case ["policy", "nodes", int(number), str(name), *_]:
            policy["nodes"][number].pop(name, None)
        case ["policy", ("leader" | "ends" | "seed" | "silent" | "heard_by" | "watchers") as name, *_]:
            policy.pop(name, None)
        case ["team"]:
            data["team"] = "team"
        case [("goal" | "max_turns") as name, *_]:
            data.pop(name, None)
        case _:
            return False
    return True


def _name_of(form: Sequence[Any], number: int) -> object:
    """Return what a field is called, or its number."""
    field = form[number]
    return field.get("name", number + 1) if isinstance(field, dict) else number + 1


def _leave_out_field(node: dict[str, Any], number: int) -> None:
    """Leave out what a field of a form is, and what waits for it."""
    name = _name_of(node["form"], number)
    node["form"][number] = {"name": f"field-{len(node['form'])}-{number}"}
    for way in node.get("exits", ()):
        for part in ("when", "remove"):
            if isinstance(way, dict) and isinstance(asks := way.get(part), dict) and asks.get("field") == name:
                del way[part]


_OF_A_NAME = "a name is 1 to 32 of a-z 0-9 _ -, beginning with a letter"
_KINDS: Mapping[str, str] = {
    "int": "a whole number",
    "string": "a text",
    "bool": "`true` or `false`, without quotes",
    "tuple": 'a list, such as `["a", "b"]`',
    "model": "a table",
    "mapping": "a table",
    "dict": "a table",
}
"""What is wanted, by how the types of pydantic's errors begin."""


def _in_words(error: Mapping[str, Any], subject: str) -> str:  # noqa: C901 - a case for each kind of error
    """Say what is wrong with a value, which may stand for something in it."""
    kind, given, context = str(error["type"]), error["input"], error.get("ctx", {})
    it_is = f"{subject} is {_cut(given)}"
    if "equals" in error["loc"]:
        return f"{it_is}, and must be true or false, a whole number or a text of up to {MAX_FIELD_CHARS} characters"
    match kind:
        case "missing":
            return f"{subject} is missing"
        case "string_pattern_mismatch":
            return _OF_A_NAME if subject == "`name`" else f"{it_is}; {_OF_A_NAME}"
        case "literal_error":
            known = re.findall(r"'([^']*)'", context["expected"])
            return f"{it_is}, and may be {listed(known)}{nearest(given, known) if isinstance(given, str) else ''}"
        case "string_too_short" | "too_short":
            return f"{subject} is empty"
        case "string_too_long" | "too_long":
            what = "characters" if kind == "string_too_long" else "parts"
            return f"{subject} has more than {context['max_length']:,} {what}"
        case _ if "timeout" in error["loc"]:
            return f"{it_is}, and must be a number of seconds, more than 0 and no more than 30 days"
        case "greater_than_equal":
            return f"{it_is}, and must be at least {context['ge']:,}"
        case "less_than_equal":
            return f"{it_is}, and must be at most {context['le']:,}"
        case "value_error":
            why = why_of(cast(ErrorDetails, error))
            return f"{subject}: {why}" if subject else why
        case _:
            wanted = _KINDS.get(kind.partition("_")[0])
            return f"{subject} must be {wanted}, and is {_cut(given)}" if wanted else f"{subject} cannot be {_cut(given)}"


def _subject(loc: Sequence[int | str]) -> str:
    """Name what is wrong in the words of the file."""
    loc, of = list(loc[: loc.index("equals") + 1]) if "equals" in loc else list(loc), ""
    if loc and str(loc[-1]).startswith("the field "):
        of = str(loc.pop())
    elif len(loc) > 1 and loc[0] == "exits":
        of, loc = f"exit {int(loc[1]) + 1}", loc[2:]
    path = ".".join(one for one in loc if isinstance(one, str))
    return f"`{path}` of {of}" if path and of else f"`{path}`" if path else of


def _cut(given: object) -> str:
    match given:
        case bool():
            return str(given).lower()
        case Mapping():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            shown = repr(given)
            return shown if len(shown) <= 60 else f"{shown[:60]} …"
