"""How busy an agent is, as it tells the registry, which tells all who search (paper, section 2.3.1).

What not all members of a group were told of must not be read off that. So a group in which something is kept from members
(`Policy.hides`) takes as much of each of them as what all were told of, and one task at least, for as long as it lasts. What an
agent leads for such a group in a nested team is not told at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from ioa.agent.history import GroupHistory
from ioa.group.policy.hearing import hides
from ioa.group.state import OpenTask
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.load import Load


def load_of(me: AgentId, groups: Mapping[CommId, GroupHistory], slots: int) -> Load:
    """Return how busy an agent is.

    Args:
        me: The agent.
        groups: What it knows of the groups that it takes part in.
        slots: How many tasks it does at once.
    """
    told = [history for history in groups.values() if not _is_untold(me, history, groups)]
    return Load.counted(tasks=sum(_tasks(me, history) for history in told), groups=len(told), slots=slots)


def _is_untold(me: AgentId, history: GroupHistory, groups: Mapping[CommId, GroupHistory]) -> bool:
    """Whether a group is a team that this agent leads for one in which something is kept from members."""
    charter = history.charter
    while charter is not None and charter.parent is not None and charter.owner == me:
        above = groups.get(charter.parent.comm_id)
        if above is None:
            return False
        if _hides(above):
            return True
        charter = above.charter
    return False


def _tasks(me: AgentId, history: GroupHistory) -> int:
    if history.state is None:
        return 0
    hidden = _hides(history)
    tasks = [one for one in history.state.open_tasks if one.assignee == me and not _waits(one) and not (hidden and one.earshot)]
    return max(1, len(tasks)) if hidden else len(tasks)


def _waits(task: OpenTask) -> bool:
    """Whether a task waits for an answer, which may take days; it has left its slot to others."""
    return task.question is not None and task.question.answer is None


def _hides(history: GroupHistory) -> bool:
    return history.charter is not None and history.state is not None and hides(history.charter.policy, history.state)
