"""Answers of the MCP tools. The schemas of the tools are generated from these classes."""

from __future__ import annotations

from typing import Annotated, Any, Self
from urllib.parse import quote

from pydantic import Field

from ioa.client.documents import OpenQuestion
from ioa.client.waiting import AwaitedDocument
from ioa.foreign_text import continued
from ioa.protocol.goals import GoalResult
from ioa.protocol.model import Model
from ioa.protocol.texts import shortened
from ioa_gateway.open_questions import CallerStatus
from ioa_gateway.pagination import EntryPage

MOST_BYTES = 100_000
"""Maximum bytes of a line and of a result. Longer texts are cut, because models cannot read more."""

_ANSWER = "Ask your user, and call post with the answer; then call wait again, with this `after`."


class FoundAgent(Model):
    """An agent that fits a need."""

    agent: Annotated[str, Field(description="the name for `ask_agent` and `start_group`")]
    description: str
    online: bool
    score: Annotated[float, Field(description="how well the agent fits, from 0 to 1")]


class FoundAgents(Model):
    """The agents that fit a need, best first."""

    agents: tuple[FoundAgent, ...]


class Started(Model):
    """A goal that is stored."""

    goal_id: str
    next: Annotated[str, Field(description="the next step")] = "Call wait with this goal_id until there is a result."


class ResultFile(Model):
    """A file of a result."""

    name: str
    uri: Annotated[str, Field(description="the resource with the content")]
    media_type: str
    size_bytes: int


class GoalEnd(Model):
    """How a goal ended."""

    reached: bool
    reason: str
    answer: Annotated[str, Field(description="at most the first 100 kB")]
    files: tuple[ResultFile, ...]

    @classmethod
    def of(cls, result: GoalResult) -> Self:
        """Describe a result."""
        files = tuple(
            ResultFile(
                name=file.name,
                uri=f"ioa://goal/{result.goal_id}/{number}/{quote(file.name, safe='')}",
                media_type=file.media_type,
                size_bytes=file.size_bytes,
            )
            for number, file in enumerate(result.artifacts)
        )
        return cls(reached=result.succeeded, reason=str(result.reason), answer=shortened(result.content, MOST_BYTES), files=files)


class Asks(Model):
    """A question to a person, or to the user of the goal."""

    item: Annotated[str, Field(description="the id of the question, for post")]
    seat: Annotated[str | None, Field(description="the person, for post; null for the user of the goal")]
    told: Annotated[str, Field(description="the question in words")]
    options: tuple[str, ...]
    fields: Annotated[dict[str, str], Field(description="the expected content of each field of the form")]
    until: str | None

    @classmethod
    def of(cls, words: str, asked: AwaitedDocument | OpenQuestion) -> Self:
        """Describe an open turn of a person, or a question to the user of a goal."""
        seat, blanks = (asked.person, asked.form) if isinstance(asked, AwaitedDocument) else (None, ())
        fields = {blank.name: blank.told for blank in blanks}
        until = asked.until and asked.until.isoformat()
        return cls(item=asked.item, seat=seat, told=words, options=asked.options, fields=fields, until=until)


class GoalProgress(Model):
    """The status of a goal, and its lines after `after`."""

    goal_id: str
    state: Annotated[str, Field(description="waiting, discussing, paused, concluding, concluded, failed or cancelled")]
    members: Annotated[tuple[str, ...], Field(description="the agents of the team")] = ()
    open_tasks: Annotated[tuple[str, ...], Field(description="open tasks with their agents")] = ()
    turns: Annotated[int, Field(description="turns that the team has taken")] = 0
    lines: Annotated[tuple[str, ...], Field(description="messages and actions of agents, in order")] = ()
    after: Annotated[int, Field(description="pass this to the next wait, for new lines only")]
    result: Annotated[GoalEnd | None, Field(description="null until the goal ends")]
    asks: Annotated[tuple[Asks, ...], Field(description="open questions to people whose seats you have, or to the user")]
    next: str

    @classmethod
    def of(cls, found: CallerStatus, after: int, page: EntryPage) -> Self:
        """Describe a goal, and the lines of a page of entries after a sequence."""
        status, entries, team = found.status, page.documents, dict[str, Any]()
        lines = [
            shortened(f"{'  ' * entry['depth']}{line['speaker']} ({line['act']}): {continued(line['text'])}", MOST_BYTES)
            for entry in entries
            for line in entry["lines"]
        ]
        if status.standing is not None:
            state = status.standing.state
            team["members"] = [member.agent_id for member in state.members]
            team["open_tasks"] = [f"{task.task_id}: {task.assignee}" for task in state.open_tasks]
            team["turns"] = state.turns_taken
        ended, asks = status.result and GoalEnd.of(status.result), tuple(Asks.of(*one) for one in found.in_words())
        goes_on = "More was said." if page.next is not None else "It goes on." if ended is None else ""
        return cls(
            **team,
            goal_id=status.record.goal.goal_id,
            state=str(status.phase),
            lines=tuple(lines),
            after=entries[-1]["seq"] if entries else after,
            result=ended,
            asks=asks,
            next=_ANSWER if asks and page.next is None else goes_on and f"{goes_on} Call wait again, with this `after`.",
        )
