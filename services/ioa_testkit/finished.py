"""A finished goal in a test: its result, its log and its transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ioa.client.transcript import Transcript
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import Message

News = StoredEntry | Said
"""An entry of a group's log, or a progress report that is not in the log."""


@dataclass(frozen=True)
class Progress:
    """A progress report of an agent."""

    agent: AgentId
    task_id: TaskId
    content: str
    fraction: float | None


@dataclass(frozen=True, repr=False)
class FinishedGoal:
    """A goal that has ended.

    Attributes:
        result: The published result.
        files: The produced files, by name.
        log: The entries of its group and of nested groups, in order of time.
        progress: The progress reports of the agents' functions. The group receives at most one of them per second.
        transcript: The log in readable lines.
    """

    result: GoalResult
    files: Mapping[str, bytes]
    log: Sequence[StoredEntry]
    progress: Sequence[Progress]
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
        return messages_of(self.log, by)

    def __repr__(self) -> str:
        told = "\n".join(f"    {line}" for line in self.transcript.splitlines())
        return f"<goal that ended with {self.result.reason}: {self.content!r}\n{told}>"


def messages_of(news: Sequence[News], by: str | None = None) -> list[Message]:
    """Return the messages in entries, in order; of an agent, or of all agents."""
    events = [one.entry.event for one in news if isinstance(one, StoredEntry)]
    said = [event.message for event in events if isinstance(event, Said)]
    return [message for message in said if by in (None, message.header.sender)]


def all_messages(news: Sequence[News]) -> list[Message]:
    """Return the messages in entries and progress reports, in order."""
    events = [one if isinstance(one, Said) else one.entry.event for one in news]
    return [event.message for event in events if isinstance(event, Said)]


def transcript_of(news: Sequence[News]) -> str:
    """Return entries and progress reports in readable lines, for a failing test."""
    transcript = Transcript()
    lines = [line for one in news for line in (transcript.hear(one) if isinstance(one, Said) else transcript.read(one))]
    return "\n".join(f"{'  ' * line.depth}{line.speaker} [{line.act}] {line.text}".rstrip() for line in lines)
