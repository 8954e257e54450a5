"""Goals, groups, agents and answers as programs read them: the JSON that the command line and the gateway share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ioa.client.transcript import task_document
from ioa.group.requests import GroupSnapshot
from ioa.group.state import GroupState
from ioa.ports.goal_client import GoalStatus
from ioa.protocol.cards import AgentStatus, advice
from ioa.protocol.goals import GoalResult
from ioa.protocol.search import NeedHits, SearchResult
from ioa.protocol.usage import NOTHING, Usage


def row_document(status: GoalStatus) -> Mapping[str, Any]:
    """Describe a goal in a list for programs."""
    return {
        **status.record.goal.model_dump(mode="json"),
        "accepted_at": status.record.accepted_at.isoformat(),
        "comm_id": status.record.goal.comm_id,
        "status": standing_of(status),
        "turns_taken": turns_of(status) or 0,
        "usage": usage_of(status).model_dump(),
        "result": result_document(status.result) if status.result else None,
    }


def goal_document(status: GoalStatus) -> Mapping[str, Any]:
    """Describe a goal for programs, with its team and its tasks."""
    state = status.standing.state if status.standing else None
    return {
        **row_document(status),
        "members": [member.agent_id for member in state.members] if state else [],
        "tasks_given": state.tasks_given if state else 0,
        "tasks": [task_document(task) for task in state.tasks] if state else [],
    }


def result_document(result: GoalResult) -> Mapping[str, Any]:
    """Describe a result for programs."""
    return {**result.model_dump(mode="json"), "succeeded": result.succeeded}


def group_document(standing: GroupSnapshot) -> Mapping[str, Any]:
    """Describe a group for programs."""
    told = dict(state_document(standing.state))
    goal = standing.charter.goal if standing.charter else None
    head = {name: told.pop(name) for name in ("comm_id", "goal_id")}
    tail = {name: told.pop(name) for name in ("decisions", "tasks_given", "tasks")}
    return {**head, "goal": goal, **told, "seq": standing.seq, **tail}


def state_document(state: GroupState) -> Mapping[str, Any]:
    """Describe for programs how a group stands, or stood."""
    return {
        "comm_id": state.comm_id,
        "goal_id": state.goal_id,
        "owner": state.owner,
        "members": [{"agent_id": member.agent_id, "lost": member.lost} for member in state.members],
        "phase": str(state.phase),
        "turn": state.turn,
        "turns_taken": state.turns_taken,
        "max_turns": state.limits.max_turns,
        "floor_holder": state.floor_holder,
        "depth": state.depth,
        "parent": state.parent.model_dump(mode="json") if state.parent else None,
        "decisions": [one.model_dump(mode="json") for one in state.decisions],
        "tasks_given": state.tasks_given,
        "tasks": [task_document(task) for task in state.tasks],
    }


def agent_document(status: AgentStatus) -> Mapping[str, Any]:
    """Describe an agent for programs."""
    return {
        **status.card.model_dump(mode="json"),
        "online": status.online,
        "registered_at": status.registered_at.isoformat(),
        "load": status.load.model_dump(),
        "advice": list(advice(status.card)),
    }


def search_document(result: SearchResult) -> Mapping[str, Any]:
    """Describe an answer for programs: every hit in full with its need, and the merged list by ids."""
    return {
        "by_need": [_need_document(need) for need in result.by_need],
        "merged": [hit.card.agent_id for hit in result.merged],
    }


def standing_of(status: GoalStatus) -> str:
    """Say in one word how a goal stands: how it ended, the phase of its group, or that it waits for one."""
    if status.result is not None:
        return str(status.result.reason)
    return str(status.standing.state.phase) if status.standing else "waiting"


def turns_of(status: GoalStatus) -> int | None:
    """Return the turns taken in a goal's group and in the teams nested in it that have ended; None before there is a group."""
    if status.result is not None:
        return status.result.turns
    state = status.standing.state if status.standing else None
    return state.turns_taken + state.nested_turns if state else None


def usage_of(status: GoalStatus) -> Usage:
    """Return what a goal has used up."""
    if status.result is not None:
        return status.result.usage
    return status.standing.state.spent if status.standing else NOTHING


def _need_document(found: NeedHits) -> Mapping[str, Any]:
    hits = [
        {
            "agent_id": hit.card.agent_id,
            "pool": hit.card.pool,
            "description": hit.card.description,
            **hit.model_dump(mode="json", exclude={"card"}),
        }
        for hit in found.hits
    ]
    return {"need": found.need.text, "hits": hits}
