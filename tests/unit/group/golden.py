"""Golden logs: events, and for each the machine's decision, state, effects and views, as one file of JSON lines.

`python -m tests.unit.group.golden` plays the recorded events again and writes the file anew. A commit that changes the file states
the intended differences. `record` adds a log: pass it the recorded events and the events of the new log.
A state is recorded as the fields that changed since the previous step, and so is each member's view.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ioa.group.events import Entry, Event, GroupLaunched
from ioa.group.legality import legal_kinds
from ioa.group.machine import Effect, step
from ioa.group.policy.visibility import view_for
from ioa.group.rejection import IllegalEventError
from ioa.protocol.policy import Policy

FILE = Path(__file__).parents[2] / "data" / "golden" / "groups.jsonl.xz"

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_EFFECT: TypeAdapter[Effect] = TypeAdapter(Effect)

Json = dict[str, Any]


def read() -> Mapping[str, list[Json]]:
    """Return the recorded steps of each log by its name."""
    with lzma.open(FILE, "rt", encoding="utf-8") as lines:
        return {log["name"]: log["steps"] for log in map(json.loads, lines)}


def events_of(steps: Sequence[Json]) -> list[Event]:
    """Return the events of recorded steps, the rejected ones too."""
    return [_EVENT.validate_json(json.dumps(one["event"])) for one in steps]


def accepted(steps: Sequence[Json]) -> list[Entry]:
    """Return the entries that recorded steps lead to, with the machine of this version."""
    state, entries = None, list[Entry]()
    events = events_of(steps)
    policy = policy_of(events[0])
    for event, one in zip(events, steps, strict=True):
        if "refused" not in one:
            moved = step(state, event, policy)
            state = moved.state
            entries.append(Entry(event=moved.event, state=state, audience=moved.audience))
    return entries


def play(events: Sequence[Event]) -> Iterator[Json]:
    """Yield what the machine makes of each event, as it is recorded."""
    state, policy = None, policy_of(events[0])
    before: dict[str, Json] = {}
    for event in events:
        told: Json = {"event": event.model_dump(mode="json")}
        try:
            moved = step(state, event, policy)
        except IllegalEventError as refused:
            yield {**told, "refused": [refused.code, refused.message, list(refused.legal)]}
            continue
        heard = () if state is None else state.hearing
        event, state = moved.event, moved.state
        entry = Entry(event=event, audience=moved.audience, state=state)
        shown = [] if policy is None or not policy.is_scoped else [*dict.fromkeys((*heard, *state.hearing))]
        views = {agent_id: view_for(policy, entry, agent_id).model_dump(mode="json") for agent_id in shown}
        now: dict[str, Json] = {"": state.model_dump(mode="json")}
        now |= {agent_id: view.pop("state") for agent_id, view in views.items()}
        yield {
            **told,
            "state": _changed(before.get("", {}), now[""]),
            "effects": [[type(one).__name__, _EFFECT.dump_python(one, mode="json")] for one in moved.effects],
            "audience": moved.audience,
            "legal": {one: [kind.__name__ for kind in legal_kinds(state, one, event.at, policy)] for one in state.living()},
            "views": {one: {**view, "state": _changed(before.get(one, {}), now[one])} for one, view in views.items()},
        }
        before |= now


def _changed(before: Json, after: Json) -> Json:
    gone: Json = {name: None for name in before if name not in after}
    return gone | {name: value for name, value in after.items() if name not in before or before[name] != value}


def record(logs: Mapping[str, Sequence[Event]]) -> None:
    """Write the file."""
    with lzma.open(FILE, "wt", encoding="utf-8", preset=9) as file:
        for name, events in logs.items():
            file.write(json.dumps({"name": name, "steps": list(play(events))}, separators=(",", ":")) + "\n")


def policy_of(launch: Event) -> Policy | None:
    """What leads the group that was launched."""
    return launch.charter.policy if isinstance(launch, GroupLaunched) else None


def main() -> None:
    """Record the file again."""
    logs = {name: events_of(steps) for name, steps in read().items()}
    record(logs)


if __name__ == "__main__":
    main()
