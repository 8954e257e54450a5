"""The client of a running system: launch a goal, follow its groups, and read its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from os import PathLike
from pathlib import Path

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection, until_refused
from ioa.client.documents import OpenQuestion, open_questions
from ioa.client.history import heads_of_tree, read_back, read_on
from ioa.client.rerun import order_rerun
from ioa.client.shown_questions import parse_item
from ioa.client.waiting import open_groups
from ioa.client.watching import patiently, watch
from ioa.concurrency import beside, fail_after
from ioa.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from ioa.group.events import QuestionAnswered
from ioa.group.requests import AnswerQuestion, AnyGoal
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.agents.search import Search, SearchResult
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder, order_of
from ioa.protocol.goals import Artifact, Goal, GoalRecord, GoalResult
from ioa.protocol.ids import ADMIN, CommId, GoalId, GoalName, TaskId, UserId
from ioa.protocol.teams.stored_teams import TeamReference

File = str | PathLike[str]

REJECTED_TIMEOUT = timedelta(seconds=30)
"""How long reconnects may be rejected: servers reload their configuration while keys are replaced."""
ACCEPTED_WITHIN = timedelta(seconds=2)
"""How long `launch` waits for group setup to accept a goal."""

PAGE_ENTRIES = 100
"""Default number of entries of a page."""

END = 2**63 - 1
"""A sequence after all entries."""

_SOON_SECONDS, _LONGEST_SECONDS = 0.005, 0.2


@dataclass(frozen=True)
class Group:
    """A group by its own id, which is read with its nested groups."""

    comm_id: CommId


Target = str | GoalName | Group
"""A goal, whose root group is read with its nested groups, or any group with its nested groups."""


@dataclass(frozen=True)
class Launched:
    """A stored goal, and its record once group setup has accepted it."""

    name: GoalName
    record: GoalRecord | None

    @property
    def goal_id(self) -> GoalId:
        """The goal's id."""
        return self.name.goal_id

    @property
    def comm_id(self) -> CommId:
        """The goal's root group."""
        return self.name.comm_id


class Client(NatsSystemClient):
    """A running system. Made by `connect`; all methods may be called concurrently.

    Every method raises `UnavailableError` if the system does not answer. A goal is named by its id, or by its `GoalName` if it
    belongs to another user.
    """

    async def run(self, goal: str | GoalOrder, files: Sequence[File] = ()) -> GoalResult:
        """Launch a goal and wait for its result, across outages. A failed goal has a result too; see `GoalResult.succeeded`.

        Raises:
            InvalidInputError: The goal is not valid, or a file cannot be read.
            ConflictError: Another goal has this id.
        """
        launched, _ = await self._launch(goal, files, ACCEPTED_WITHIN)
        return await self.wait_for_result(launched.name)

    async def launch(
        self, goal: str | GoalOrder, files: Sequence[File] = (), *, accepted_within: timedelta = ACCEPTED_WITHIN
    ) -> Launched:
        """Store the files and the goal, and wait until group setup accepts it. The same goal with the same id is launched once.

        Args:
            goal: The text of the goal, or an order with options.
            files: Paths of its input files.
            accepted_within: Timeout of the acceptance. The goal stays stored after the timeout.

        Raises:
            InvalidInputError: The goal is not valid, a file cannot be read, two files have the same name, or the goal was not
                accepted, for example because its team does not exist.
            ConflictError: Another goal has this id.
        """
        launched, refused = await self._launch(goal, files, accepted_within)
        if refused is not None:
            raise InvalidInputError(refused.content)
        return launched

    async def _launch(
        self, goal: str | GoalOrder, files: Sequence[File], accepted_within: timedelta
    ) -> tuple[Launched, GoalResult | None]:
        """Launch a goal, and return also the result of a goal that was not accepted."""
        order = await self.complete(goal if isinstance(goal, GoalOrder) else order_of(goal), [Path(file) for file in files])
        name = await self.publish(order)
        found = await self._acceptance(name, accepted_within)
        if isinstance(found, GoalResult):
            return Launched(name, None), found
        if found is not None and not _is_that_of(order, found.goal):
            raise ConflictError(f"There is another goal {name} already.", hint="Choose another id, or none.")
        return Launched(name, found), None

    async def rerun(self, goal: AnyGoal, *, at: int, message: str) -> Launched:
        """Launch a new goal that continues the conversation of a goal up to one message, with this message replaced.

        The new goal contains the text, files, team and limits of the earlier goal. It counts its own turns, tokens and cost.
        `goals(labels={"rerun-of": …})` lists the reruns of a goal.

        Args:
            goal: The earlier goal; it is not changed.
            at: Sequence of the entry whose message is replaced; later entries are left out.
            message: New text of the message.

        Raises:
            NotFoundError: The goal or the entry does not exist.
            InvalidInputError: The entry is no message, the new text is empty, or the new goal was not accepted.
            PayloadTooLargeError: The text of the new goal exceeds the limit.
        """
        return await self.launch(await order_rerun(self, await self._name(goal), at, message))

    async def follow(self, target: Target, *, after: int = 0) -> AsyncGenerator[StoredEntry, None]:
        """Yield each entry of a group and of its nested groups once, by rising sequence, until the group or the goal has ended.

        After an interruption, continue from the sequence of the last entry, in any process.

        Args:
            target: A goal or a group, which need not exist yet.
            after: Yield only entries after this sequence.
        """
        goal = target if isinstance(target, Group) else await patiently(partial(self._name, target))
        until = None if isinstance(goal, Group) else partial(self.wait_for_result, goal)
        async with watch(self, goal.comm_id, after=after, until=until) as news:
            async for one in news:
                if isinstance(one, StoredEntry):
                    yield one

    async def entries(
        self, target: Target, *, after: int = 0, before: int | None = None, limit: int = PAGE_ENTRIES
    ) -> Sequence[StoredEntry]:
        """Read one page of the entries of a group and its nested groups, by rising sequence.

        The number of requests does not depend on the length of the log.

        Args:
            target: A goal or a group; the page of a missing one is empty.
            after: Only entries after this sequence: the first ones, unless `before` is set.
            before: Only entries before this sequence: the last ones. `END` reads the newest entries.
            limit: Maximum number of entries. A shorter page is the last one.

        Raises:
            InvalidInputError: The limit is less than one.
        """
        if limit < 1:
            raise InvalidInputError(f"A page of {limit} entries cannot be read.", hint="Read at least one.")
        found = list[StoredEntry]()
        async with aclosing(self.read(target, after=after, before=before, page_size=limit)) as entries:
            async for stored in entries:
                found.append(stored)
                if len(found) == limit:
                    break
        return found if before is None else found[::-1]

    async def read(
        self, target: Target, *, after: int = 0, before: int | None = None, page_size: int = PAGE_ENTRIES
    ) -> AsyncGenerator[StoredEntry, None]:
        """Yield the present entries one by one, with at most a few pages in memory.

        Args:
            target: A goal or a group; a missing one has no entries.
            after: Only entries after this sequence, oldest first unless `before` is set.
            before: Only entries before this sequence, newest first.
            page_size: Approximate number of entries of a request.
        """
        comm_id = await self._comm_id(target)
        if before is None:
            reading = read_on(self, comm_id, after=after, page_size=page_size)
        else:
            reading = read_back(self, comm_id, before=before, page_size=page_size)
        async with aclosing(reading) as entries:
            async for stored in entries:
                if stored.seq <= after:
                    return
                yield stored

    async def state(self, target: Target, *, at: int | None = None) -> Mapping[CommId, GroupState]:
        """Read the states of a group and its nested groups, by their ids; empty before the group is opened.

        Each level of nesting takes one or two requests. Groups that ended long before are missing; see `GroupState.nested`.

        Args:
            target: A goal or a group.
            at: Sequence of the entry after which the states are read; None: now.
        """
        heads = await heads_of_tree(self, [await self._comm_id(target)], END if at is None else at)
        return {comm_id: head.state for comm_id, head in heads.items() if head is not None}

    async def waiting(self, goal: AnyGoal | None = None) -> Sequence[OpenQuestion]:
        """List the open questions of groups and their tasks to the user of their goal.

        Args:
            goal: Only questions of this goal, of any user. None: of all open goals of the caller, and for an admin of all users.
        """
        if goal is None:
            states = [group.state async for group in open_groups(self, await self._asked_user())]
        else:
            states = [*(await self.state(goal)).values()]
        return [question for state in states for question in open_questions(state)]

    async def answer(self, item: str, text: str, *, key: str = "") -> None:
        """Answer a question that `waiting` lists. The first answer counts; the same answer again changes nothing.

        Args:
            item: The item of the question.
            text: The answer.
            key: Id of the answer in the log.

        Raises:
            InvalidInputError: The item is not valid, or the answer is none of the options.
            NotFoundError: There is no such group.
            ForbiddenError: The goal belongs to another user.
            ConflictError: The question has another answer, which the message contains, or is closed.
        """
        comm_id, number, task_id = parse_item(item)
        state = (await self.group(comm_id)).state
        asked = {"turn": number} if task_id is None else {"task_id": task_id, "number": number}
        try:
            request = validate(AnswerQuestion, {"comm_id": comm_id, **asked, "answer": text, "key": key})
            await self.send_answer(request, state.user)
        except ConflictError as error:
            counted = next(_answers_to(await self.group_entries(comm_id), number, task_id), None)
            if counted is None:
                raise
            if counted.answer != text:
                message = f"It is too late to answer {item}: {counted.by} has answered {counted.answer!r}."
                raise ConflictError(message) from error

    async def search(self, *needs: str) -> SearchResult:
        """Search for agents that fit needs, each described in words.

        Raises:
            InvalidInputError: No need is given, or one is empty or too long.
        """
        return await self.find_agents(validate(Search, {"needs": [{"text": need} for need in needs]}))

    async def _asked_user(self) -> UserId | None:
        """Return the user whose questions are listed; None: all users."""
        try:
            user = await self.user()
        except ForbiddenError:
            return None
        return None if user == ADMIN else user

    async def _comm_id(self, target: Target) -> CommId:
        return target.comm_id if isinstance(target, Group) else (await self._name(target)).comm_id

    async def _acceptance(self, name: GoalName, within: timedelta) -> GoalRecord | GoalResult | None:
        """Return the record of an accepted goal, or the result of a rejected one; None after the timeout."""
        pause, refused = _SOON_SECONDS, None
        try:
            async with fail_after(within.total_seconds()):
                while True:
                    try:
                        return (await self.goal(name)).record
                    except NotFoundError:
                        if refused is not None:
                            return refused
                        refused = await self.result(name)
                        if refused is None:
                            await asyncio.sleep(pause)
                            pause = min(pause * 2, _LONGEST_SECONDS)
        except TimeoutError:
            return None


def _answers_to(entries: Sequence[StoredEntry], number: int, task_id: TaskId | None) -> Iterator[QuestionAnswered]:
    """Yield the answers of users to a question."""
    for event in (one.entry.event for one in entries):
        if isinstance(event, QuestionAnswered) and event.task_id == task_id and number == (event.turn or event.number):
            yield event


def _is_that_of(order: GoalOrder, goal: Goal) -> bool:
    """Return whether a goal is the accepted order. Inline inputs are compared by name."""
    given = {one.name: one.sha256 for one in goal.inputs}
    files = all(given.get(one.name) == one.sha256 for one in order.inputs if isinstance(one, Artifact))
    ours = {"traceparent": goal.traceparent}
    if isinstance(order.team, str):
        if goal.team is None or not (goal.team_name and order.names(TeamReference.parse(goal.team_name))):
            return False
        order, ours = order.model_copy(update={"team": goal.team}), {**ours, "team_name": goal.team_name}
    accepted = order.accepted(goal.name, goal.inputs).model_copy(update=ours)
    return files and len(given) == len(order.inputs) and accepted == goal


@asynccontextmanager
async def open_system(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[Client]:
    """Connect to a running system.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
        NotLetInError: The server rejected the credentials of reconnects for `REJECTED_TIMEOUT`; the block is cancelled.
    """
    async with open_connection(settings, patience=patience) as client, beside(until_refused(client, REJECTED_TIMEOUT)):
        yield Client(client)
