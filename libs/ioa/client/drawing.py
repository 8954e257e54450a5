"""Mermaid diagram of a policy: a box for each node, an arrow for each exit."""

from __future__ import annotations

from collections.abc import Iterator

from ioa.errors import InvalidInputError
from ioa.group.requests import GroupSnapshot
from ioa.group.state import Concluding, Ended
from ioa.protocol.policy import END, Condition, Exit, Node, Policy, Watcher

_MODES = {
    "order": "in order",
    "nominate": "each names the next",
    "random": "at random",
    "hub": "{by} names who answers",
    "together": "side by side",
    "ask": "{by} chooses who speaks",
}


def draw_policy(policy: Policy, at: str | None = None) -> str:
    """Draw a policy as a Mermaid diagram of states.

    Args:
        policy: The policy.
        at: Node to mark. Default None marks no node.
    """
    lines = ["stateDiagram-v2", "    [*] --> n0"]
    for number, node in enumerate(policy.nodes):
        lines.append(f'    state "{"<br/>".join(_describe(node))}" as n{number}')
        lines += [f"    n{number} --> {_target(policy, way.to)}: {_why(node, way)}" for way in node.exits]
        if not node.exits:
            lines.append(f"    n{number} --> [*]: {_at_last(node)}")
    if policy.watchers:
        lines += ["    note right of n0", *(f"        {_watches(watcher)}" for watcher in policy.watchers), "    end note"]
    if at is not None:
        lines += ["    classDef here stroke-width:4px", f"    class n{policy.node_numbers[at]} here"]
    return "\n".join(lines) + "\n"


def draw_group(standing: GroupSnapshot) -> str:
    """Draw the policy of a group, and mark its current node unless the discussion has ended.

    Raises:
        InvalidInputError: The group has no policy.
    """
    policy, state = None if standing.charter is None else standing.charter.policy, standing.state
    if policy is None or state.course is None:
        raise InvalidInputError(f"No policy leads the group {state.comm_id}: its members decide who speaks.")
    discusses = not isinstance(state.stage, Concluding | Ended)
    return draw_policy(policy, policy.nodes[state.course.node].name if discusses else None)


def _watches(watcher: Watcher) -> str:
    of = f" of {watcher.by}" if watcher.by else ""
    after = f"each message{of}" if watcher.every == 1 else f"messages{of}, each {watcher.every} turns"
    may = [f"go to {', '.join(watcher.go)}" if verb == "go" else verb for verb in watcher.may]
    return f"{watcher.role} watches {watcher.node or 'all'}, after {after}, and may {' or '.join(may)}"


def _target(policy: Policy, name: str) -> str:
    return "[*]" if name == END else f"n{policy.node_numbers[name]}"


def _describe(node: Node) -> Iterator[str]:
    yield node.name
    yield f"{', '.join(node.roles)} ({_MODES[node.turns.mode].format(by=node.turns.by)})"
    if node.opens is not None:
        yield f"{node.opens.role} opens"
    if node.form:
        yield f"fills in {', '.join(field.name for field in node.form)}"
    if node.writes:
        yield f"writes {', '.join(node.writes)}"
    if node.tasks:
        yield "gives out tasks"
    if node.review is not None:
        yield f"reviewed by {node.review.by}"
    if node.visits is not None:
        yield f"entered {_times(node.visits, 'time')} at most"


def _why(node: Node, way: Exit) -> str:
    told = [] if way.when is None else list(_conditions(way.when))
    if way.by == "speaker":
        told.insert(0, f"{node.turns.by if node.turns.mode == 'hub' else 'the speaker'} chooses")
    if way.judge is not None:
        told.insert(0, f"{way.judge} judges")
    if way.remove is not None:
        told.append(f"whom {way.remove.by if way.remove.by == 'most' else 'the last'} named as {way.remove.field} is out")
    return " and ".join(told) or _at_last(node)


def _at_last(node: Node) -> str:
    if node.max is not None:
        return f"after {_times(node.max, 'turn')}"
    return "after a round" if all(way.is_bare for way in node.exits) else "at last"


def _conditions(when: Condition) -> Iterator[str]:
    if when.turns is not None:
        yield f"after {_times(when.turns, 'turn')}"
    if when.rounds is not None:
        yield f"after {_times(when.rounds, 'round')}"
    if when.visits is not None:
        yield f"from visit {when.visits} on"
    if when.field is not None:
        who = {"last": "the last", "any": "any", "all": "each", "most": "most"}[when.by]
        of = f" of {when.of}" if when.of else ""
        is_so = f"= {_value(when.equals)}" if when.equals is not None else f"like {when.like}" if when.like else "is given"
        yield f"{who} {when.field}{of} {is_so}"
    if when.left is not None:
        yield f"{when.at_most} of {when.left} left at most"


def _value(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
