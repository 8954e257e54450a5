"""What an agent's speaker keeps to itself while its process runs: its own thoughts, and a conclusion that it has announced.

After a restart the thoughts are missing in its prompts, and a conclusion is asked for anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ioa.ports.brain import GroupView
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Message

MAX_GROUPS = 1_000
"""Of how many groups something is kept; what was used longest ago is forgotten first."""
MAX_THOUGHT_CHARS = 300


@dataclass
class _Memory:
    thoughts: dict[int, str] = field(default_factory=dict)
    announced: Conclusion | None = None


class PrivateMemory:
    """Remember for each group and agent."""

    def __init__(self) -> None:
        self._groups: OrderedDict[tuple[CommId, AgentId], _Memory] = OrderedDict()

    def note_thought(self, view: GroupView, thought: str) -> None:
        """Keep the beginning of what was thought in a turn, in place of what was thought in it before."""
        short = " ".join(thought.split())
        if len(short) > MAX_THOUGHT_CHARS:
            short = f"{short[: MAX_THOUGHT_CHARS - 1]}…"
        self._of(view).thoughts[view.state.turn] = short

    def thoughts(self, view: GroupView) -> Mapping[int, str]:
        """Return the agent's own thoughts, by turn."""
        return self._of(view).thoughts

    def announce(self, view: GroupView, conclusion: Conclusion | None) -> None:
        """Keep a conclusion until the announcement of it has been accepted; None if it is not written yet."""
        self._of(view).announced = conclusion

    def announced(self, view: GroupView) -> Conclusion | None:
        """Return the conclusion whose announcement is the last that happened, unless it was refused since; it is given out once."""
        memory = self._of(view)
        conclusion, memory.announced = memory.announced, None
        last = view.log[-1] if view.log else None
        is_mine = (
            isinstance(last, Message)
            and last.header.sender == view.me
            and isinstance(last.payload, ConcludeGroupDiscussion)
            and not view.refusals
        )
        return conclusion if is_mine else None

    def _of(self, view: GroupView) -> _Memory:
        key = (view.charter.comm_id, view.me)
        memory = self._groups.setdefault(key, _Memory())
        self._groups.move_to_end(key)
        if len(self._groups) > MAX_GROUPS:
            self._groups.popitem(last=False)
        return memory
