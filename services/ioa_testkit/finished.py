"""A finished goal in a test: its result, its log and its transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ioa.client.transcript import Transcript
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult
from ioa.protocol.messages import Message

News = StoredEntry | Said
"""An entry of a group's log, or a progress report that is not in the log."""


@dataclass(frozen=True, repr=False)
class FinishedGoal:
    """A goal that has ended.

    Attributes:
        result: The published result.
        files: The produced files, by name.
        log: The entries of its group and of nested groups, in order of time.
        transcript: The log in readable lines.
    """

    result: GoalResult
    files: Mapping[str, bytes]
    log: Sequence[StoredEntry]
    transcript: str

    @property
    def succeeded(self) -> bool:
        """Whether the goal succeeded."""
        return self.result.succeeded

    @property
    def content(self) -> str:
        """The answer, or the reason of the failure."""
        return self.result.content

    def messages(self, *, by: str | None = None) -> list[Message]:
        """Return the messages of the group and its nested groups, in order; of an agent, or of all agents."""
        said = [one.entry.event.message for one in self.log if isinstance(one.entry.event, Said)]
        return [message for message in said if by in (None, message.header.sender)]

    def __repr__(self) -> str:
        told = "\n".join(f"    {line}" for line in self.transcript.splitlines())
        return f"<goal that ended with {self.result.reason}: {self.content!r}\n{told}>"


def transcript_of(news: Sequence[News]) -> str:
    """Return entries and progress reports in readable lines, for a failing test."""
    transcript = Transcript()
    lines = [line for one in news for line in (transcript.hear(one) if isinstance(one, Said) else transcript.read(one))]
    return "\n".join(f"{'  ' * line.depth}{line.speaker} [{line.act}] {line.text}".rstrip() for line in lines)
