"""What an agent's speaker keeps to itself: its own thoughts, in short, and a conclusion that it has announced.

Thoughts are kept by whoever follows the group for it. An announced conclusion lasts as long as the process; after a restart it is
asked for anew.
"""

from __future__ import annotations

from collections import OrderedDict

from ioa.ports.brain import GroupView
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Message

MAX_GROUPS = 1_000
"""Of how many groups something is kept; what was used longest ago is forgotten first."""
MAX_THOUGHT_CHARS = 300


def shortened_thought(thought: str) -> str:
    """Return the beginning of a thought, in one line."""
    short = " ".join(thought.split())
    return f"{short[: MAX_THOUGHT_CHARS - 1]}…" if len(short) > MAX_THOUGHT_CHARS else short


class PrivateMemory:
    """Remember for each group and agent."""

    def __init__(self) -> None:
        self._announced: OrderedDict[tuple[CommId, AgentId], Conclusion | None] = OrderedDict()

    def announce(self, view: GroupView, conclusion: Conclusion | None) -> None:
        """Keep a conclusion until the announcement of it has been accepted; None if it is not written yet."""
        self._announced[_whose(view)] = conclusion
        self._announced.move_to_end(_whose(view))
        if len(self._announced) > MAX_GROUPS:
            self._announced.popitem(last=False)

    def announced(self, view: GroupView) -> Conclusion | None:
        """Return the conclusion whose announcement is the last that happened, unless it was refused since; it is given out once."""
        conclusion = self._announced.pop(_whose(view), None)
        last = view.log[-1] if view.log else None
        is_mine = (
            isinstance(last, Message)
            and last.header.sender == view.me
            and isinstance(last.payload, ConcludeGroupDiscussion)
            and not view.refusals
        )
        return conclusion if is_mine else None


def _whose(view: GroupView) -> tuple[CommId, AgentId]:
    return view.charter.comm_id, view.me
