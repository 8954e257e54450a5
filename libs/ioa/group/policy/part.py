"""What a member is told of its part: its roles, where the group stands, and what it is to do there."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.group.state import Concluding, Ended, GroupState
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Memory, Policy


@dataclass(frozen=True)
class Part:
    """A member's part under a policy.

    Attributes:
        roles: What it plays, by name.
        node: Where the group is; empty when the discussion has ended.
        prompts: What its roles are told, and who speaks in the node, in this order.
        memory: What it is shown of what it has heard: by the first of its roles that says so, those that speak in the node first.
    """

    roles: tuple[str, ...]
    node: str
    prompts: tuple[str, ...]
    memory: Memory | None = None


def part_of(policy: Policy, state: GroupState, agent_id: AgentId) -> Part:
    """Tell a member its part."""
    held = [policy.roles[number] for number in state.members[state.number_of(agent_id)].roles]
    node = None if state.course is None or isinstance(state.stage, Concluding | Ended) else policy.nodes[state.course.node]
    speaks = node is not None and any(role.name in node.roles for role in held)
    prompts = [role.prompt for role in held] + ([node.prompt] if node is not None and speaks else [])
    memories = [role.memory for role in sorted(held, key=lambda role: node is None or role.name not in node.roles) if role.memory]
    place, memory = "" if node is None else node.name, memories[0] if memories else None
    return Part(tuple([role.name for role in held]), place, tuple(filter(None, prompts)), memory)
