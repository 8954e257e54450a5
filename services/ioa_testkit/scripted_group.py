"""A real group with the agent under test; the test writes the messages of all other members.

The router handles the messages as usual. An illegal message fails the test at its line, with the router's reason.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from ioa.agent.definition import AgentDefinition
from ioa.client.watching import watch
from ioa.concurrency import fail_after
from ioa.errors import InvalidInputError, IoaError
from ioa.group.requests import Rejected
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, GoalId, MessageId, TaskId, comm_id_of_goal, task_id_of_turn
from ioa.protocol.messages import (
    TASK_REPORTS,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pause,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.texts import in_words
from ioa_testkit.finished import News, Progress, all_messages, messages_of, transcript_of
from ioa_testkit.planes import Plane
from ioa_testkit.script_error import ScriptError


@dataclass(frozen=True)
class Answer:
    """The result of a task.

    Attributes:
        content: The reported result, or the reason of the failure.
        succeeded: Whether the task succeeded.
        files: The attached files, by name.
        progress: The progress reports.
    """

    content: str
    succeeded: bool
    files: Mapping[str, bytes]
    progress: Sequence[Progress]


class GivenTask:
    """A task that the script has assigned to a member. `answer` waits until this member reports the result."""

    def __init__(self, group: ScriptedGroup, spec: TaskSpec) -> None:
        self._group = group
        self.task_id: TaskId = spec.task_id
        self.assignee: AgentId = spec.assignee

    async def answer(self) -> Answer:
        """Wait for the task's result.

        Raises:
            ScriptError: The task was closed without a result, or not in time.
        """
        return await self._group._answer(self.task_id)


class ScriptedMember:
    """A scripted member of a group.

    Each message is in the group's log when the call returns. A message waits while the agent under test has the floor, or works on
    a task for which the discussion waits. An illegal message raises `ScriptError` with the router's reason.
    """

    def __init__(self, group: ScriptedGroup, agent_id: AgentId) -> None:
        self._group = group
        self.agent_id = agent_id

    async def says(self, content: str, *, to: Someone) -> None:
        """Send a message, and pass the floor to another member."""
        await self._group._say(self.agent_id, lambda _: Discussion(content=content, next_speaker=id_of(to)))

    async def assigns(
        self,
        to: Someone,
        task: str,
        *,
        uses: Sequence[GivenTask] = (),
        beside: bool = False,
    ) -> GivenTask:
        """Assign a task.

        Args:
            to: The assignee.
            task: The task, in words.
            uses: Earlier tasks whose results the task uses.
            beside: Whether the discussion continues during the task. Otherwise it waits.
        """
        given: list[TaskSpec] = []

        def payload(state: GroupState) -> Payload:
            task_id = task_id_of_turn(state.turn, f"task{self._group._next_number()}")
            given.append(TaskSpec(task_id=task_id, assignee=id_of(to), task_desc=task, uses=tuple(one.task_id for one in uses)))
            return (AsyncTaskAssignment if beside else SyncTaskAssignment)(tasks=tuple(given))

        await self._group._say(self.agent_id, payload)
        return GivenTask(self._group, given[-1])

    async def asks(self, to: Someone, task: str, *, uses: Sequence[GivenTask] = ()) -> Answer:
        """Assign a task, and wait for its result."""
        return await (await self.assigns(to, task, uses=uses)).answer()

    async def waits_for(self, *tasks: GivenTask) -> None:
        """Pause the discussion until tasks are closed."""
        await self._group._say(self.agent_id, lambda _: Pause(triggers=tuple(one.task_id for one in tasks)))

    async def reports(self, task: GivenTask, content: str = "", fraction: float | None = None) -> None:
        """Acknowledge a task of this member, or report its progress."""
        number = self._group._next_number(task.task_id)
        await self._group._say(
            self.agent_id,
            lambda _: InformTaskProgress(task_id=task.task_id, number=number, content=content, fraction=fraction),
            is_report=True,
        )

    async def finishes(self, task: GivenTask, content: str, *, failed: bool = False) -> None:
        """Report the result of a task of this member."""
        outcome = TaskOutcome.FAILED if failed else TaskOutcome.DONE
        await self._group._say(
            self.agent_id,
            lambda _: InformTaskResult(task_id=task.task_id, outcome=outcome, task_conclusion=content),
            is_report=True,
        )

    async def concludes(self, content: str, *, failed: bool = False) -> GoalResult:
        """End the discussion, state the group's answer, and return the goal's result."""
        if self._group.state.phase is not Phase.CONCLUDING:
            await self._group._say(self.agent_id, lambda _: ConcludeGroupDiscussion())
        reason = Reason.FAILED if failed else Reason.CONCLUDED
        await self._group._say(self.agent_id, lambda _: Conclusion(content=content, reason=reason))
        return await self._group.result()


class ScriptedGroup:
    """A group with the agent under test and scripted members, by name: `group["lead"]`.

    Attributes:
        agent_id: The agent under test.
    """

    def __init__(
        self,
        plane: Plane,
        goal_id: GoalId,
        agent_id: AgentId,
        members: Sequence[AgentId],
        progress: Sequence[Progress],
        within: timedelta,
    ) -> None:
        self.agent_id = agent_id
        self._client, self._network = plane.client, plane.network
        self._goal_id = goal_id
        self._members = {member: ScriptedMember(self, member) for member in members}
        self._within = within
        self._news: list[News] = []
        self._progress = progress
        self._heard = asyncio.Event()
        self._listened = 0
        self._numbers = Counter[str]()
        """Numbers of the last task, and of the last report on each task."""

    def __getitem__(self, name: str) -> ScriptedMember:
        if name not in self._members:
            known = ", ".join(self._members)
            raise InvalidInputError(f"{name!r} is no scripted member of this group.", hint=f"There are {known}.")
        return self._members[AgentId(name)]

    @property
    def log(self) -> list[StoredEntry]:
        """The entries of the group's log so far."""
        return [one for one in self._news if isinstance(one, StoredEntry)]

    @property
    def progress(self) -> list[Progress]:
        """The progress reports of the agent under test so far. The group receives at most one of them per second."""
        return list(self._progress)

    @property
    def transcript(self) -> str:
        """The log so far, in readable lines."""
        return transcript_of(self._news)

    @property
    def state(self) -> GroupState:
        """The state of the group."""
        return self.log[-1].entry.state

    def messages(self, *, by: str | None = None) -> list[Message]:
        """Return the messages so far, in order; of a member, or of all members."""
        return messages_of(self._news, by)

    async def next_message(self) -> Message:
        """Wait for the next message of the agent under test, except reports on its tasks.

        Raises:
            ScriptError: There is no message in time, for example because the agent does not have the floor.
        """
        await self._until(lambda: self._listened < len(self._spoken()), f"{self.agent_id} has not said anything more")
        message = self._spoken()[self._listened]
        self._listened += 1
        return message

    async def result(self) -> GoalResult:
        """Wait for the result of the group's goal.

        Raises:
            ScriptError: The group does not end in time.
        """
        await self._until(lambda: bool(self.log) and self.state.phase.is_terminal, "The group has not ended")
        return await self._client.wait_for_result(self._goal_id)

    async def follow(self) -> None:
        """Record the entries and the progress reports of the group until it ends."""
        async with watch(self._client, comm_id_of_goal(self._goal_id)) as coming:
            async for news in coming:
                self._news.append(news)
                self._heard.set()

    async def until_open(self) -> None:
        """Wait for the first entry of the log."""
        await self._until(lambda: bool(self.log), "The group has not opened")

    def _spoken(self) -> list[Message]:
        return [message for message in self.messages(by=self.agent_id) if not isinstance(message.payload, TASK_REPORTS)]

    def _next_number(self, name: str = "") -> int:
        self._numbers[name] += 1
        return self._numbers[name]

    async def _say(self, sender: AgentId, write: Callable[[GroupState], Payload], *, is_report: bool = False) -> None:
        if not is_report:  # a report needs no floor
            await self._until_the_agent_is_done()
        try:
            payload = write(self.state)
        except ValidationError as error:
            raise ScriptError(f"{sender} cannot say that: {in_words(error, 'line')}.", so_far=self.transcript) from None
        message = self._message(sender, payload)
        try:
            answer = await self._network.say(message)
        except IoaError as error:
            raise ScriptError(f"{sender}'s line was not taken: {error}", so_far=self.transcript) from None
        if isinstance(answer, Rejected):
            legal = f"{sender} could say {', '.join(answer.legal)} now." if answer.legal else f"{sender} can say nothing now."
            raise ScriptError(f"The router refused {sender}'s {payload.type}: {answer.message}", hint=legal, so_far=self.transcript)
        await self._until(lambda: message in all_messages(self._news), f"{sender} was not heard")

    def _message(self, sender: AgentId, payload: Payload) -> Message:
        state = self.state
        task = state.task(payload.task_id) if isinstance(payload, TASK_REPORTS) else None
        header = Header(
            message_id=MessageId(f"m-{uuid.uuid4().hex}"),
            comm_id=comm_id_of_goal(self._goal_id),
            sender=sender,
            state=state.phase,
            turn=state.turn if task is None else task.turn,
            after=self.log[-1].seq,
            sent_at=datetime.now(UTC),
        )
        return Message(header=header, payload=payload)

    async def _until_the_agent_is_done(self) -> None:
        def is_done() -> bool:
            state = self.state
            holds_up = not state.floor and any(task.assignee == self.agent_id for task in state.open_tasks)
            return state.phase.is_terminal or not (self.agent_id in state.floor or holds_up)

        has = "has the floor" if self.agent_id in self.state.floor else "works on a task that the discussion waits for"
        await self._until(is_done, f"{self.agent_id} {has}, and is not done")

    async def _answer(self, task_id: TaskId) -> Answer:
        await self._until(
            lambda: all(task.task_id != task_id for task in self.state.unfinished_tasks), f"Task {task_id} has no result"
        )
        for message in self.messages():
            payload = message.payload
            if isinstance(payload, InformTaskResult) and payload.task_id == task_id:
                files = {artifact.name: await self._client.fetch(artifact) for artifact in payload.artifacts}
                progress = [one for one in self.progress if one.task_id == task_id]
                return Answer(payload.task_conclusion, payload.outcome is TaskOutcome.DONE, files, progress)
        raise ScriptError(f"Task {task_id} was closed without a result of its assignee.", so_far=self.transcript)

    async def _until(self, is_true: Callable[[], bool], otherwise: str) -> None:
        try:
            async with fail_after(self._within.total_seconds()):
                while not is_true():
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            told = f"{otherwise} after {self._within.total_seconds():g} s."
            raise ScriptError(told, hint="Its captured log may say why.", so_far=self.transcript) from None


Someone = str | ScriptedMember | AgentDefinition
"""A member, by name or as an object."""


def id_of(one: Someone) -> AgentId:
    """Return the id of a member."""
    return AgentId(one if isinstance(one, str) else one.agent_id)
