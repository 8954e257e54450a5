"""What an agent's speaker keeps to itself: its own thoughts, in short, and a conclusion that it has announced.

Both are kept by whoever follows the group for it, and go with the group. After a restart a conclusion is asked for anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from ioa.ports.brain import GroupView
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Message

MAX_THOUGHT_CHARS = 300


def shortened_thought(thought: str) -> str:
    """Return the beginning of a thought, in one line."""
    short = " ".join(thought.split())
    return f"{short[: MAX_THOUGHT_CHARS - 1]}…" if len(short) > MAX_THOUGHT_CHARS else short


@dataclass(frozen=True)
class _Announced:
    conclusion: Conclusion


def keep_announced(view: GroupView, conclusion: Conclusion | None) -> None:
    """Keep a conclusion until the announcement of it has been accepted; None if it is not written yet, or needs not be kept."""
    if conclusion is None:
        view.kept.pop(_Announced, None)
    else:
        view.kept[_Announced] = _Announced(conclusion)


def take_announced(view: GroupView) -> Conclusion | None:
    """Return the conclusion whose announcement is the last that happened, unless it was refused since; it is given out once."""
    announced: _Announced | None = view.kept.pop(_Announced, None)
    last = view.log[-1] if view.log else None
    is_mine = (
        isinstance(last, Message)
        and last.header.sender == view.me
        and isinstance(last.payload, ConcludeGroupDiscussion)
        and not view.refusals
    )
    return announced.conclusion if announced is not None and is_mine else None
