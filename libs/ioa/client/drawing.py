"""Mermaid diagram of a policy: a box for each node, an arrow for each exit."""

from __future__ import annotations

from collections.abc import Iterator

from ioa.errors import InvalidInputError
from ioa.group.requests import GroupSnapshot
from ioa.group.state import Concluding, Ended
from ioa.protocol.policy import Policy, Watcher
from ioa.protocol.policy_parts import END, Condition, Exit, Node


def draw_policy(policy: Policy, at: str | None = None) -> str:
    """Draw a policy as a Mermaid diagram of states.

    Args:
        policy: The policy.
        at: Node to mark. Default None marks no node.
    """
    lines = ["stateDiagram-v2", "    [*] --> n0"]
    for number, node in enumerate(policy.nodes):
        lines.append(f'    state "{"<br/>".join(_describe(node))}" as n{number}')
        for way in node.exits or (Exit(to=END),):
            target = "[*]" if way.to == END else f"n{policy.node_numbers[way.to]}"
            lines.append(f"    n{number} --> {target}: {_why(node, way)}")
    if policy.watchers:
        lines += ["    note right of n0", *(f"        watcher: {_fields(watcher)}" for watcher in policy.watchers), "    end note"]
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


def _describe(node: Node) -> Iterator[str]:
    yield node.name
    by = f" by {node.turns.by}" if node.turns.by else ""
    yield f"{', '.join(node.roles)} ({node.turns.mode}{by})"
    if node.form:
        yield f"form: {', '.join(field.name for field in node.form)}"
    if node.review is not None:
        yield f"reviewed by {node.review.by}"
    yield from [f"{name} = all" for name in ("join", "take") if getattr(node, name) == "all"]


def _why(node: Node, way: Exit) -> str:
    parts = [] if way.by == "rule" else [f"{way.by} chooses"]
    if way.when is not None:
        parts.append(_fields(way.when))
    if way.remove is not None:
        parts.append(f"removes {way.remove.field}")
    return ", ".join(parts) or (f"max = {node.max}" if node.max else "after a round")


def _fields(part: Condition | Watcher) -> str:
    """Write the given fields as in the team file."""
    given = part.model_dump(mode="json", exclude_defaults=True)
    return ", ".join(f"{name} = {', '.join(value) if isinstance(value, list) else value}" for name, value in given.items())
