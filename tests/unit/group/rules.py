"""Rules of the state machine as golden data: each rule is a story, told in commands, with the outcome of each command.

    # a task whose lease expires once is suspect
    Its reason, if the name does not tell it.
    > launched ada bob
    owner=ada … stage.holder=ada turn=1
    > assigns_and_waits ada t1-1:bob
    stage.phase=assigned …

A command (`>`) calls a method of `Scenario`. The line after it shows the fields of the state that changed, the effects, and the
audience if it is not all members; or why the event was rejected, with the legal alternatives. `back 2` returns to the story after
the second command. `legal`, `offer` and `view` show what a member may send and sees, `owed` the effects that the state calls for.

`python -m tests.unit.group.rules` records all outcomes again. A commit that changes outcomes states the intended differences.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, validate_call

from ioa.group.deadlines import next_deadline
from ioa.group.legality import legal_kinds, offer
from ioa.group.machine import Effect, owed_effects
from ioa.group.policy.visibility import seen_by
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState
from ioa.protocol.ids import AgentId
from tests.unit.group import scenario
from tests.unit.group.scenario import START, Scenario

FOLDER = Path(__file__).parents[2] / "data" / "rules"
_EFFECT: TypeAdapter[Effect] = TypeAdapter(Effect)

_KINDS = ("phase", "status")
_IDS = ("task_id", "agent_id", "subgroup", "role", "name")
_OPAQUE = ("sketch", "policy")
_PRESENT = "present"
_NO_CHANGE = "nothing changes"

Flat = Mapping[str, str]


def read(path: Path) -> list[str]:
    """Return the texts of the rules in a file."""
    return re.findall(r"^# .*?(?=^# |\Z)", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def play(rule: str) -> str:
    """Return the text of a rule with the present outcomes of its commands."""
    title = rule.partition("\n> ")[0]
    return "\n".join([title, *_played([line[2:] for line in rule.splitlines() if line.startswith("> ")]), "", ""])


def tell(commands: Sequence[str]) -> Scenario:
    """Return the story that commands tell."""
    story: Scenario | None = None
    for command in commands:
        verb, *words = shlex.split(command)
        told = _do(story, verb, words)
        story = told if isinstance(told, Scenario) else story
    assert story is not None
    return story


def _played(commands: Sequence[str]) -> Iterator[str]:
    stories: list[Scenario] = []
    for command in commands:
        yield f"> {command}"
        verb, *words = shlex.split(command)
        story = stories[-1] if stories else None
        try:
            result = stories[int(words[0]) - 1] if verb == "back" else _do(story, verb, words)
        except IllegalEventError as rejection:
            result = f"rejected {rejection.code}: {rejection.message} [{', '.join(rejection.legal)}]"
        if not isinstance(result, str):
            stories.append(result)
            if verb not in ("after", "back"):
                yield " ".join(_outcome(None if verb.startswith("launched") else story, result)) or _NO_CHANGE
        elif story is not None:
            stories.append(story)
            yield result or _NO_CHANGE


def _do(story: Scenario | None, verb: str, words: Sequence[str]) -> Scenario | str:
    starts = verb.startswith("launched")
    if story is not None and verb in ("legal", "offer", "view", "owed"):
        return _look(story, verb, AgentId(words[0] if words else ""))
    parts = [word.partition("=") if word.partition("=")[0].isidentifier() else ("", "", word) for word in words]
    values = [(name if is_named else "", value if is_named or not name else name) for name, is_named, value in parts]
    read: list[tuple[str, Any]] = [(name, json.loads(value) if value[:1] in ("{", "[") else value) for name, value in values]
    if verb == "happens" and story is not None:
        read = [("", {"at": story.now, **event}) for _, event in read]
    method = validate_call(getattr(scenario if story is None or starts else story, verb))
    told = method(*(value for name, value in read if not name), **{name: value for name, value in read if name})
    assert isinstance(told, Scenario)
    return told


def _look(story: Scenario, verb: str, agent_id: AgentId) -> str:
    state, policy = story.state, story.policy
    if verb == "legal":
        return " ".join(kind.__name__ for kind in legal_kinds(state, agent_id, story.now, policy))
    if verb == "owed":
        return " ".join(_effects(owed_effects(state)))
    assert policy is not None
    if verb == "view":
        return " ".join(changes(flat(state), flat(seen_by(policy, state, agent_id))))
    offered = offer(policy, state, agent_id)
    return "nothing" if offered is None else " ".join(changes({}, leaves(offered._asdict())))


def _outcome(before: Scenario | None, after: Scenario) -> Iterator[str]:
    now = flat(after.state)
    if before is None:
        yield from changes({name: value for name, value in now.items() if value == _PRESENT}, now)
        return
    if before.now != after.now:
        yield f"now={shown(after.now)}"
    yield from changes(flat(before.state), now)
    yield from _effects(after.effects)
    if after.audience != after.state.hearing:
        yield f"told:{','.join(after.audience)}"


def _effects(effects: Sequence[Effect]) -> Iterator[str]:
    for effect in effects:
        fields = leaves(_EFFECT.dump_python(effect, mode="json"))
        yield f"{type(effect).__name__}({' '.join(f'{name}={value}' for name, value in fields.items())})"


def changes(before: Flat, after: Flat) -> Iterator[str]:
    """Yield the fields that changed, and the outermost objects that were removed."""
    yield from (f"{name}={value}" for name, value in after.items() if before.get(name) != value)
    yield from (
        f"{name}=-" for name in dict.fromkeys(_removed(name, before, after) for name in before if name not in after) if name
    )


def _removed(name: str, before: Flat, after: Flat) -> str:
    """Return the outermost object that was removed with a field; nothing if the object has become another kind."""
    parts = name.split(".")
    kinds = [".".join([*parts[:depth], kind]) for depth in range(1, len(parts)) for kind in _KINDS]
    if any(before.get(kind) != after.get(kind) for kind in kinds if kind in after):
        return ""
    outer = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    return next((path for path in outer if not any(one.startswith(f"{path}.") for one in after)), name)


def flat(state: GroupState) -> Flat:
    """Return the fields of a state by their paths, without what never changes."""
    fields = state.model_dump(exclude={"comm_id", "goal_id", "user", "owner", "limits", "monologue"})
    return leaves({"due": next_deadline(state), **fields})


def leaves(value: Any, name: str = "") -> dict[str, str]:
    """Return the fields of a value by their paths, without those that are empty."""
    inner: list[tuple[str, Any]] = []
    match value:
        case dict():
            inner = [(f"{name}.{key}" if name else key, one) for key, one in value.items() if key not in _OPAQUE]
        case tuple() | list() if any(isinstance(one, dict) for one in value):
            for number, one in enumerate(value):
                key = next((key for key in _IDS if one.get(key)), "")
                path = f"{name}.{one[key] if key else number}"
                inner += [(path, {field: told for field, told in one.items() if field != key}), (path, _PRESENT)]
        case tuple() | list():
            return {name: ",".join(map(shown, value))} if value else {}
        case None | False | 0 | "":
            return {}
        case _:
            return {name: shown(value)}
    return {path: leaf for key, one in inner for path, leaf in leaves(one, key).items()}


def shown(value: object) -> str:
    """Return a value as text; times as seconds since the start."""
    if isinstance(value, datetime):
        return f"{(value - START).total_seconds():+g}s"
    return f"({','.join(map(shown, value))})" if isinstance(value, tuple) else str(value)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text("".join(map(play, read(path))), encoding="utf-8")
