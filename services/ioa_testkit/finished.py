"""What a goal came to, and all that happened on the way, for a test to look at."""

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
"""What is heard of a group: an entry of its log, or a report of progress that is none."""


@dataclass(frozen=True)
class Progress:
    """What an agent reported while it worked on a task."""

    agent: AgentId
    task_id: TaskId
    content: str
    fraction: float | None


@dataclass(frozen=True, repr=False)
class FinishedGoal:
    """A goal that has ended.

    Attributes:
        result: Its one typed result, as the system publishes it.
        files: What it produced, by name.
        log: The entries of its group and of nested teams, in the order in which everything happened.
        progress: What agents reported while they worked. Of several reports in a second the group hears the newest.
        transcript: What happened, one line for each thing.
    """

    result: GoalResult
    files: Mapping[str, bytes]
    log: Sequence[StoredEntry]
    progress: Sequence[Progress]
    transcript: str

    @property
    def succeeded(self) -> bool:
        """Whether the goal was reached."""
        return self.result.succeeded

    @property
    def content(self) -> str:
        """The answer, or why there is none."""
        return self.result.content

    def messages(self, *, by: str | None = None) -> list[Message]:
        """Return what was said in the group and its nested teams, in order; by one agent, or by all."""
        return messages_of(self.log, by)

    def __repr__(self) -> str:
        told = "\n".join(f"    {line}" for line in self.transcript.splitlines())
        return f"<goal that ended with {self.result.reason}: {self.content!r}\n{told}>"


def messages_of(news: Sequence[News], by: str | None = None) -> list[Message]:
    """Return the messages among entries, in order; by one agent, or by all."""
    events = [one.entry.event for one in news if isinstance(one, StoredEntry)]
    said = [event.message for event in events if isinstance(event, Said)]
    return [message for message in said if by in (None, message.header.sender)]


def all_messages(news: Sequence[News]) -> list[Message]:
    """Return the messages among entries and reports of progress, in the order in which they were heard."""
    events = [one if isinstance(one, Said) else one.entry.event for one in news]
    return [event.message for event in events if isinstance(event, Said)]


def transcript_of(news: Sequence[News]) -> str:
    """Write down what happened, one line for each thing, for whoever has to find out why a test fails."""
    transcript = Transcript()
    lines = [line for one in news for line in (transcript.hear(one) if isinstance(one, Said) else transcript.read(one))]
    return "\n".join(f"{'  ' * line.depth}{line.speaker} [{line.act}] {line.text}".rstrip() for line in lines)
