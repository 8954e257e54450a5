"""Rules of the services as golden data: each rule is a story of calls to a `Plane`, with the outcome of each call.

    # a cancelled group is cancelled once
    > plane
    > open ada bob
    log.ROOM=1:group_launched …
    > setup.cancel local '{"goal_id": "goal-1"}'
    log.ROOM=2:cancel_requested …

A command names a method of the plane or of a part of it. `$2` is what the second command returned, `x*200` stands for 200 times x,
`set` assigns an attribute, `finds` names the agents that discovery finds, and `DIGEST` is that of the policy of the accepted goal.
The lines after it show the reply or the error, and what changed in the stores. `python -m tests.unit.runtime.plane_rules` records
all outcomes again. A commit that changes them states the intended differences.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import BaseModel, validate_call

from ioa.errors import IoaError
from ioa.group.events import GroupLaunched, Said
from ioa.group.limits import GroupLimits
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import PoolId, TaskId, comm_id_of_task
from ioa.protocol.messages import Message
from tests.unit.group.rules import changes, flat, leaves, read
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ROOM, TICKET, Plane

FOLDER = Path(__file__).parents[2] / "data" / "plane_rules"
_RANDOM: Any = {"ticket_digest": True, "goal": {"traceparent"}}
_MAX_CHARS = 200
_IN_STORES = ("state", "entry", "team_members", "comm_id", "goal_id", "policy")
_NAMES = {"ROOM": ROOM, "NESTED": comm_id_of_task(ROOM, TaskId("t1-1")), "TICKET": TICKET}


async def play(rule: str) -> str:
    """Return the text of a rule with the present outcomes of its commands."""
    title = rule.partition("\n> ")[0]
    plane, replies, lines, names = Plane(), list[Any](), [title], {**_NAMES}
    for command in [line[2:] for line in rule.splitlines() if line.startswith("> ")]:
        lines.append(f"> {command}")
        verb, *words = map(_repeated, shlex.split(_renamed(command, names)))
        before = _stores(plane)
        try:
            reply = await _do(plane, verb, [_named(word) for word in words], replies)
        except IoaError as error:
            reply = error
        plane = reply if isinstance(reply, Plane) else plane
        if isinstance(reply, GoalRecord) and reply.goal.team is not None:
            names["DIGEST"] = reply.goal.team.policy.digest
        replies.append(reply)
        lines += filter(None, [_shown(reply), " ".join(changes(before, _stores(plane)))])
    return _renamed("\n".join([*lines, "", ""]), {value: name for name, value in names.items()})


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return reduce(lambda told, name: told.replace(name, names[name]), names, text)


def _repeated(text: str) -> str:
    return re.sub(r"(.)\*(\d{3,})", lambda found: found[1] * int(found[2]), text)


async def _do(plane: Plane, verb: str, words: Sequence[tuple[str, str]], replies: Sequence[Any]) -> Any:
    if verb == "plane":
        limits = GroupLimits(**{name: int(value) for name, value in words if name})
        return Plane(limits, [PoolId(pool) for name, pool in words if not name])
    if verb == "finds":
        plane.discovery.found = [(card(name), float(similarity)) for name, similarity in words]
        return None
    *path, last = verb.split(".")
    owner: Any = plane
    for name in path:
        owner = owner[int(name)] if name.isdigit() else getattr(owner, name)
    if last == "set":
        for name, value in words:
            setattr(owner, name, json.loads(value))
        return None
    method = getattr(owner, last)
    kinds = {name: str(one.annotation) for name, one in inspect.signature(method).parameters.items()}
    in_order = [*kinds.values(), *[""] * len(words)]
    given = [_value(value, in_order[place], replies) for place, (name, value) in enumerate(words) if not name]
    reply = validate_call(method)(*given, **{name: _value(value, kinds.get(name, ""), replies) for name, value in words if name})
    return await reply if inspect.isawaitable(reply) else reply


def _named(word: str) -> tuple[str, str]:
    name, is_named, value = word.partition("=")
    return (name, value) if is_named and name.isidentifier() else ("", word)


def _value(text: str, kind: str, replies: Sequence[Any]) -> Any:
    if text.startswith("$"):
        return replies[int(text[1:]) - 1]
    return json.loads(text) if kind not in ("str", "bytes") and (text[:1] in ("{", "[") or text == "null") else text


def _shown(reply: object) -> str:
    """Return an error, or what a reply says besides what the stores contain then."""
    match reply:
        case None | Plane() | GroupState() | GoalRecord() | Message() | GroupLaunched():
            return ""
        case IoaError():
            wait = getattr(reply, "retry_after", None)
            return f"{type(reply).__name__}: {_short(str(reply))}" + (f" (retry after {wait})" if wait else "")
        case BaseModel():
            return f"= {type(reply).__name__} {_line(leaves(_pruned(reply.model_dump(exclude_defaults=True))))}".rstrip()
        case _:
            return f"= {_short(str(reply))}"


def _pruned(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _pruned(value) for name, value in told.items() if name not in _IN_STORES}
    return tuple([_pruned(one) for one in told]) if isinstance(told, tuple) else told


def _line(told: Mapping[str, str]) -> str:
    return " ".join(f"{name}={_short(value)}" for name, value in told.items())


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS // 2]}… ({len(text)})"


def _stores(plane: Plane) -> Mapping[str, str]:
    """Return what the stores contain, by paths."""
    logs, members = plane.log._entries, plane.memberships._numbers
    goals = {room: one.model_dump(exclude_defaults=True, exclude=_RANDOM) for room, one in plane.goals._by_id.items()}
    stored: dict[str, Any] = {
        "cards": sorted(one.card.agent_id for one in plane.view.cards()),
        "online": [one.card.agent_id for one in plane.view.cards() if plane.view.is_online(one.card.agent_id)],
        "pools": sorted(plane.work.pools),
        "log": {room: {str(one.seq): _entry(one) for one in entries} for room, entries in logs.items()},
        "results": {room: one.model_dump(exclude_defaults=True) for room, one in plane.results._results.items()},
        "ended": {room: one.model_dump(exclude_defaults=True) for room, one in plane.ended._ended.items()},
        "dead": {str(number): f"{one.reason}: {one.why}" for number, one in enumerate(plane.dead.letters)},
        "timers": {room: tuple(plane.timers.pending(room)) for room, _ in plane.timers._pending},
        "goals": goals,
        "members": {room: [one for one, where in members if where == room] for room in plane.memberships.comm_ids()},
        "open": {room: [offer.seq for offer in one.offers] or "yes" for room, (_, one) in plane.open_groups._noted.items()},
        "queue": {str(pool): [goal.goal_id for goal in waiting.values()] for pool, waiting in plane.work._waiting.items()},
        "taken": [*plane.work.taken],
        "pushed": {name: [one.seq for one in entries] for name, entries in plane.inboxes._pushed.items()},
        "reports": len(plane.progress.reports),
        "files": {name: str(one.artifact.size_bytes) for name, one in plane.artifacts._files.items()},
    }
    found = leaves(stored)
    for room, state in [(room, entries[-1].entry.state) for room, entries in logs.items() if entries]:
        found |= {f"state.{room}.{name}": value for name, value in flat(state).items()}
        found |= {f"state.{room}.policy": state.course.policy} if state.course else {}
    return {name: _short(value) for name, value in found.items()}


def _entry(stored: StoredEntry) -> str:
    event = stored.entry.event
    about: str = event.type
    if isinstance(event, Said):
        payload = event.message.payload
        about = " ".join([f"{event.message.header.sender}:{payload.type}", getattr(payload, "content", "")[:60]]).strip()
    return f"{about} to {','.join(stored.entry.audience)}"


async def _record() -> None:
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text("".join([await play(rule) for rule in read(path)]), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_record())
