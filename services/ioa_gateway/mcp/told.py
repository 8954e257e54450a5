"""What tools answer. Their schemas are made of these, so that clients know each field before they call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Self
from urllib.parse import quote

from pydantic import Field

from ioa.client.questions import OpenQuestion, question_in_words
from ioa.client.transcript import Transcript
from ioa.client.waiting import AwaitedDocument, asked_in_words
from ioa.foreign_text import continued
from ioa.group.goal_lists import GoalStatus
from ioa.group.state import GroupState
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import CommId
from ioa.protocol.model import Model
from ioa.protocol.search import Hit
from ioa.protocol.texts import shortened
from ioa_gateway.entry_pages import EntryPage

MOST_LINES, MOST_ENTRIES = 60, 200
"""Of how much is told at once; more only if a single entry is."""
MOST_BYTES = 100_000
"""Of the lines of an answer together, and of any other text of it: what has more is told as it begins. Models read no more."""

_ANSWER = "Ask your user, and call post with the answer; then call wait again, with this `after`."


class FoundAgent(Model):
    """An agent that may fit."""

    agent: Annotated[str, Field(description="what `ask_agent` and `start_group` call it")]
    description: str
    online: bool
    score: Annotated[float, Field(description="how well it fits, from 0 to 1")]

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """Describe a hit."""
        return cls(agent=hit.card.pool, description=hit.card.description, online=hit.online, score=hit.score)


class FoundAgents(Model):
    """Who fits a need, best first."""

    agents: tuple[FoundAgent, ...]


class Started(Model):
    """A goal that is stored and will not be lost."""

    goal_id: str
    next: Annotated[str, Field(description="what to do now")] = "Call wait with this goal_id until there is a result."


class ResultFile(Model):
    """A file of a result."""

    name: str
    uri: Annotated[str, Field(description="the resource that holds it")]
    media_type: str
    size_bytes: int


class GoalEnd(Model):
    """How a goal ended."""

    reached: bool
    reason: str
    answer: Annotated[str, Field(description="as it begins, if it has more than 100 kB")]
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
    """Something that is up to a person, or to the user of the goal."""

    item: Annotated[str, Field(description="what is asked; hand it to post")]
    seat: Annotated[str | None, Field(description="the person who is asked, for post; null: the user of the goal is")]
    told: Annotated[str, Field(description="what is asked, in words")]
    options: tuple[str, ...]
    fields: Annotated[dict[str, str], Field(description="what goes into each field of the form")]
    until: str | None

    @classmethod
    def of(cls, waits: AwaitedDocument) -> Self:
        """Describe what waits."""
        until = None if waits.until is None else waits.until.isoformat()
        told = asked_in_words(waits)
        return cls(item=waits.item, seat=waits.person, told=told, options=waits.options, fields=waits.fields, until=until)

    @classmethod
    def of_user(cls, asked: OpenQuestion) -> Self:
        """Describe what the user of a goal is asked."""
        until = asked.until.isoformat()
        return cls(item=asked.item, seat=None, told=question_in_words(asked), options=asked.options, fields={}, until=until)


class GoalProgress(Model):
    """Where a goal stands, and what was said since the last look."""

    goal_id: str
    state: Annotated[str, Field(description="waiting, discussing, paused, concluding, concluded, failed or cancelled")]
    lines: Annotated[tuple[str, ...], Field(description="what agents said and did, in order")]
    after: Annotated[int, Field(description="hand this to the next wait, to hear only what is new")]
    result: Annotated[GoalEnd | None, Field(description="how it ended; null while it has not")] = None
    asks: Annotated[tuple[Asks, ...], Field(description="what waits for people whom you answer for, or the user")] = ()
    next: str = ""

    @classmethod
    def of(
        cls,
        status: GoalStatus,
        page: EntryPage,
        after: int,
        before: Mapping[CommId, GroupState],
        asks: Sequence[Asks],
    ) -> Self:
        """Describe a goal, and the first lines of a page of entries.

        `after` moves only past entries of which all lines are told, each as it begins if it has more than its part of the bytes.
        `before` contains the states of its groups before these entries, `asks` the open turns and questions of the caller.
        """
        transcript, lines, size = Transcript(base_depth=0, states=dict(before)), list[str](), 0
        has_more = page.next is not None
        for stored in page.entries:
            said = [f"{'  ' * line.depth}{line.speaker} ({line.act}): {continued(line.text)}" for line in transcript.read(stored)]
            said = [shortened(line, MOST_BYTES // len(said)) for line in said]
            size += sum(len(line.encode()) for line in said)
            if lines and (len(lines) + len(said) > MOST_LINES or size > MOST_BYTES):
                has_more = True
                break
            lines += said
            after = stored.seq
        ended = None if status.result is None else GoalEnd.of(status.result)
        goes_on = "More was said." if has_more else "It goes on." if ended is None else ""
        return cls(
            goal_id=status.record.goal.goal_id,
            state=str(status.phase),
            lines=tuple(lines),
            after=after,
            result=ended,
            asks=tuple(asks),
            next=_ANSWER if asks and not has_more else goes_on and f"{goes_on} Call wait again, with this `after`.",
        )


class Status(Model):
    """A goal at a glance."""

    goal_id: str
    goal: str
    state: str
    members: tuple[str, ...]
    open_tasks: tuple[str, ...]
    turns: int
    result: GoalEnd | None

    @classmethod
    def of(cls, status: GoalStatus) -> Self:
        """Describe a goal."""
        state = None if status.standing is None else status.standing.state
        return cls(
            goal_id=status.record.goal.goal_id,
            goal=shortened(status.record.goal.goal, MOST_BYTES),
            state=str(status.phase),
            members=() if state is None else tuple(member.agent_id for member in state.members),
            open_tasks=() if state is None else tuple(f"{task.task_id}: {task.assignee}" for task in state.open_tasks),
            turns=0 if state is None else state.turns_taken,
            result=None if status.result is None else GoalEnd.of(status.result),
        )
