"""Goals that go on from others: opened by intake alone, once, whatever fails on the way, and the original stays as it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from ioa.client.documents import standing_of
from ioa.errors import NoAgentError, NotFoundError, NotYetError, UnavailableError
from ioa.group.events import (
    GroupLaunched,
    MemberLost,
    MemberReturned,
    Said,
    TimerFired,
    files_of,
)
from ioa.group.requests import CancelGroup, GroupSnapshot, InviteMember, LaunchGroup, Rejected, Sync
from ioa.group.state import Concluding, OpenTask
from ioa.ports.goal_client import GoalStatus
from ioa.ports.group_log import StoredEntry
from ioa.ports.open_groups import OpenGroup
from ioa.protocol import subjects
from ioa.protocol.goals import Origin, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, TaskId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
)
from ioa.protocol.registry import Register
from ioa.protocol.team import team_of
from ioa.protocol.tickets import ticket_of
from ioa.testing.memory_goals import MemoryTickets
from ioa.testing.memory_log import Mishap
from tests.unit.group.scenario import card, launched_under, specs
from tests.unit.groups.test_files import fetch, put, read
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, Plane


def _in_places(**stand_ins: AgentId) -> Sequence[Mapping[str, str]]:
    return [{"old": old, "new": new} for old, new in stand_ins.items()]


BOSS, BUYER, HAND, PUB = (AgentId(one) for one in ("boss", "buyer", "hand", "pub"))


async def _a_task_of_pub(plane: Plane, accepting: Mapping[AgentId, Mapping[str, object]]) -> int:
    """Launch a goal led by pub, assign a task to hand, register other cards and return the last sequence."""
    await plane.open(PUB, HAND)
    for agent_id, told in accepting.items():
        await plane.registry.register(Register(card=card(agent_id, **told)))
    await plane.says(PUB, AsyncTaskAssignment(tasks=specs(("t1-1:hand",))))
    return (await plane.entries())[-1].seq


AGAIN = GoalId("again")
COPY = comm_id_of_goal(AGAIN)


async def a_conversation(plane: Plane) -> list[StoredEntry]:
    """A goal with a task that is done, one that runs, and the floor with ada."""
    await plane.open(ADA, BOB)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:bob"))))
    await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-1"), number=1))
    await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-2"), number=1))
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="One."))
    await plane.says(ADA, Discussion(content="And now?", next_speaker=BOB))
    await plane.says(BOB, Discussion(content="On.", next_speaker=ADA))
    return await plane.entries()


def order(
    at: int, *, of: str = GOAL, goal_id: str = AGAIN, goal: str = "Count to ten.", max_turns: int = 10, **changed: object
) -> bytes:
    """A fork as a user publishes it."""
    fork: Mapping[str, object] = {"goal_id": of, "at": at, **changed}
    return json.dumps({"goal": goal, "goal_id": goal_id, "max_turns": max_turns, "forked_from": fork}).encode()


async def forked(plane: Plane, data: bytes) -> None:
    """Publish a fork, and bring it again until it was taken."""
    for _ in range(100):
        try:
            await plane.intake.accept(subjects.goal_of(LOCAL), data, "1")
        except UnavailableError:
            continue
        return
    raise AssertionError("it is never taken")


async def test_a_fork_goes_on_where_the_original_stood() -> None:
    """What was done stays done, what ran runs again, the floor is whose it was, and it comes to a result that says where from."""
    plane = Plane()
    entries = await a_conversation(plane)
    before = [(stored.seq, stored.entry) for stored in entries]
    plane.clock.advance(timedelta(days=2))
    await plane.join(ADA, BOB)
    await forked(plane, order(entries[-1].seq))
    state = await plane.state(COPY)
    assert (state.floor_holder, state.turn, state.copying) == (ADA, entries[-1].entry.state.turn, 0)
    done, runs = state.task(TaskId("t1-1")), state.task(TaskId("t1-2"))
    assert done is not None and done.status == "closed" and done.outcome is TaskOutcome.DONE
    assert isinstance(runs, OpenTask) and runs.lease_until == plane.clock.now() + timedelta(seconds=30)
    assert await plane.replayed(COPY) == [stored.entry.state for stored in await plane.entries(COPY)]
    assert [(stored.seq, stored.entry) for stored in await plane.entries()] == before
    assert plane.work.waiting() == []  # nobody has to lead it: it has its group
    assert (await plane.memberships.page(BOB, after=0, limit=10)).memberships[-1].comm_id == COPY
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Two."), comm_id=COPY)
    await plane.says(ADA, ConcludeGroupDiscussion(), comm_id=COPY)
    await plane.says(ADA, Conclusion(content="Ten."), comm_id=COPY)
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and result.reason is Reason.CONCLUDED
    assert result.forked_from == Origin(goal_id=GOAL, at=entries[-1].seq)
    assert await plane.reason() is None


async def test_a_changed_message_is_in_the_copy_and_not_in_what_members_are_set_up_with() -> None:
    """Who was not told the message is not told its new words by the charter either."""
    plane = Plane()
    entries = await a_conversation(plane)
    await forked(plane, order(entries[-2].seq, say="What else?"))
    copied = await plane.entries(COPY)
    said = [stored.entry.event.message.payload for stored in copied if isinstance(stored.entry.event, Said)]
    assert isinstance(said[-1], Discussion) and said[-1].content == "What else?"
    assert (await plane.state(COPY)).floor_holder == BOB
    launch = copied[0].entry.event
    assert isinstance(launch, GroupLaunched) and "What else?" not in launch.model_dump_json()
    record = await plane.goals.find(COPY)
    assert record is not None and record.goal.forked_from is not None and record.goal.forked_from.say == "What else?"


async def test_the_same_fork_twice_is_one_goal_and_another_one_under_its_id_is_a_conflict() -> None:
    """However often it is published."""
    plane = Plane()
    entries = await a_conversation(plane)
    for _ in range(3):
        await forked(plane, order(entries[-1].seq))
    copied = len(await plane.entries(COPY))
    assert copied == len(entries) + 1 and plane.dead.letters == []
    await forked(plane, order(entries[-2].seq))
    assert len(await plane.entries(COPY)) == copied and len(plane.dead.letters) == 1


@pytest.mark.parametrize("mishap", Mishap)
@pytest.mark.parametrize("at", range(8))
async def test_a_copy_that_was_interrupted_is_finished(at: int, mishap: Mishap) -> None:
    """Whichever entry fails, stored or not: each is there once, and the copy goes on."""
    plane = Plane()
    entries = await a_conversation(plane)
    appended = 0

    def fail() -> None:
        nonlocal appended
        appended += 1
        if appended == at + 1:
            plane.log.fail_next_append(mishap)

    plane.log.on_append = fail
    await forked(plane, order(entries[-1].seq))
    copied = await plane.entries(COPY)
    assert [type(stored.entry.event) for stored in copied] == [*(type(stored.entry.event) for stored in entries), TimerFired]
    assert (await plane.state(COPY)).copying == 0
    assert await plane.replayed(COPY) == [stored.entry.state for stored in copied]


async def test_what_was_said_behind_an_entry_is_said_behind_its_copy() -> None:
    """Whoever looks for a message finds it: a sequence of the original means nothing in the copy."""
    plane = Plane()
    entries = await a_conversation(plane)
    message = await plane.message(ADA, Discussion(content="Now you.", next_speaker=BOB))
    header = message.header.model_copy(update={"after": entries[3].seq})
    await plane.send(message.model_copy(update={"header": header}))
    original = await plane.entries()
    await forked(plane, order(original[-1].seq))
    copied = await plane.entries(COPY)
    said = copied[len(original) - 1].entry.event
    assert isinstance(said, Said) and said.message.header.after == copied[3].seq


async def half_copied(plane: Plane, at: int) -> None:
    """Fork the conversation at an entry and leave the copy with its first one, as an intake does that loses the log."""
    plane.log.on_append = lambda: plane.log.fail_next_append(Mishap.NOT_STORED) if len(plane.log.stored()) > 1 else None
    with pytest.raises(UnavailableError):
        await plane.intake.accept(subjects.goal_of(LOCAL), order(at), "1")
    plane.log.on_append = lambda: None


async def _standing(plane: Plane) -> str:
    record, [head] = await plane.goals.find(COPY), (await plane.entries(COPY))[-1:]
    assert record is not None
    return standing_of(GoalStatus(record, GroupSnapshot(seq=head.seq, state=head.entry.state, charter=None), None))


async def test_nobody_gets_in_between() -> None:
    """While it is copied a member is told nothing, may say nothing, and no timer moves it; a cancellation ends it."""
    plane = Plane()
    entries = await a_conversation(plane)
    await half_copied(plane, entries[-1].seq)
    assert (await plane.state(COPY)).copying
    assert await _standing(plane) == "copying"
    refused = await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-9:bob",))), comm_id=COPY)
    assert isinstance(refused, Rejected)
    assert (await plane.log_pages.sync(Sync(comm_id=COPY, agent_id=ADA))).entries == ()
    plane.clock.advance(timedelta(minutes=5))
    await plane.routers[0].fire_timer(COPY)
    assert (await plane.state(COPY)).copying
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=AGAIN))
    await forked(plane, order(entries[-1].seq))
    assert await plane.reason(AGAIN) is Reason.CANCELLED


async def test_a_copy_that_nobody_finishes_ends_at_its_deadline() -> None:
    """No goal is left hanging, not even half a one."""
    plane = Plane()
    entries = await a_conversation(plane)
    await half_copied(plane, entries[-1].seq)
    await plane.run_timers()
    assert await plane.reason(AGAIN) is Reason.DEADLINE


async def test_two_that_copy_at_once_write_one_copy() -> None:
    """Two replicas of group setup are given the same order: who loses a race comes again."""
    plane = Plane()
    entries = await a_conversation(plane)
    data, calls = order(entries[-1].seq), 0

    async def another() -> None:
        await plane.intake.accept(subjects.goal_of(LOCAL), data, "1")

    outcomes = await asyncio.gather(another(), another(), return_exceptions=True)
    for one in outcomes:
        assert one is None or isinstance(one, NotYetError)
        calls += 1
    await forked(plane, data)
    copied = await plane.entries(COPY)
    assert calls == 2 and len(copied) == len(entries) + 1
    assert await plane.replayed(COPY) == [stored.entry.state for stored in copied]


async def test_another_agent_takes_ones_place() -> None:
    """It is given the task that runs; the one it stands for is not in the copy."""
    plane = Plane()
    entries = await a_conversation(plane)
    await plane.join(EVE)
    await forked(plane, order(entries[-1].seq, replace=[{"old": BOB, "new": EVE}]))
    state = await plane.state(COPY)
    assert [member.agent_id for member in state.members] == [ADA, EVE]
    runs = state.task(TaskId("t1-2"))
    assert isinstance(runs, OpenTask) and runs.assignee == EVE


async def test_without_those_who_took_part_there_is_no_fork() -> None:
    """The goal ends at once, and says who is missing; another one may stand in the place of who is gone."""
    plane = Plane()
    entries = await a_conversation(plane)
    await forked(plane, order(entries[-1].seq, replace=[{"old": BOB, "new": "nobody"}]))
    assert await plane.reason(AGAIN) is Reason.NO_AGENT
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and "nobody" in result.content


async def test_who_was_lost_when_it_was_forked_and_is_there_is_back() -> None:
    """Nobody else would tell the copy: that agent has not returned just now."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.ledgers[0].record(ROOM, MemberLost(at=plane.clock.now(), agent_id=BOB))
    entries = await plane.entries()
    await forked(plane, order(entries[-1].seq))
    copied = await plane.entries(COPY)
    assert isinstance(copied[-1].entry.event, MemberReturned) and (await plane.state(COPY)).living() == (ADA, BOB)


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"of": "unknown"}, "unknown"),
        ({"goal": "Count to eleven."}, "has the goal"),
        ({"at": 10**6}, "no entry 1000000 yet"),
        ({"at": 1, "say": "x"}, "Nobody says anything"),
        ({"replace": [{"old": "zoe", "new": "eve"}]}, "zoe"),
    ],
)
async def test_what_cannot_be_forked_is_refused_with_the_reason(about: Mapping[str, object], told: str) -> None:
    """As a dead letter and a failed result: another's or an unknown goal, another text, nobody's words, no member."""
    plane = Plane()
    entries = await a_conversation(plane)
    fields = {"at": entries[-1].seq, **about}
    at = fields.pop("at")
    assert isinstance(at, int)
    await forked(plane, order(at, **fields))  # type: ignore[arg-type]
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and result.reason is Reason.FAILED and told in result.content
    assert len(plane.dead.letters) == 1


async def test_a_nested_team_that_ended_is_in_the_copy_and_retention_leaves_the_original_alone() -> None:
    """The copy's own team bears an id of its own, so that nothing of the original goes with the fork."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-1"), number=1))
    await plane.nest("t1-1", BOB, EVE)
    inner = comm_id_of_task(ROOM, TaskId("t1-1"))
    await plane.says(BOB, ConcludeGroupDiscussion(), comm_id=inner)
    await plane.says(BOB, Conclusion(content="Five."), comm_id=inner)
    entries = await plane.entries()
    await forked(plane, order(entries[-1].seq))
    copied = comm_id_of_task(COPY, TaskId("t1-1"))
    assert (await plane.state(copied)).phase is Phase.CONCLUDED
    assert [stored.entry.event.type for stored in await plane.entries(copied)] == [
        stored.entry.event.type for stored in await plane.entries(inner)
    ]
    assert (await plane.state(COPY)).nested == (copied,)
    for comm_id in (COPY, copied):
        logged = await plane.entries(comm_id)
        assert logged[-1].log_bytes == sum(stored.size_bytes for stored in logged)
    assert set(plane.log.stored()) == {ROOM, inner, COPY, copied}
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=AGAIN))
    assert await plane.reason(AGAIN) is Reason.CANCELLED


@pytest.mark.parametrize("begun", [False, True])
async def test_a_fork_that_is_cancelled_while_the_original_is_read_stays_cancelled(*, begun: bool) -> None:
    """A long log takes a while: whoever cancels meanwhile has ended the goal, and nothing is copied behind that."""
    plane = Plane()
    entries = await a_conversation(plane)
    if begun:
        await half_copied(plane, entries[-1].seq)
    read = plane.log.read

    async def cancelled_meanwhile(
        comm_id: CommId, *, after: int, limit: int, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        if comm_id == ROOM and await plane.goals.find(COPY) is not None:
            await plane.setup.cancel(LOCAL, CancelGroup(goal_id=AGAIN))
        return await read(comm_id, after=after, limit=limit, max_bytes=max_bytes)

    plane.log.read = cancelled_meanwhile  # type: ignore[method-assign]
    await forked(plane, order(entries[-1].seq))
    copied = await plane.entries(COPY)
    assert await plane.reason(AGAIN) is Reason.CANCELLED
    assert [one.entry.state.phase.is_terminal for one in copied] == [False] * (len(copied) - 1) + [True]


async def test_a_goal_that_is_removed_while_it_is_read_is_not_forked_in_part() -> None:
    """Retention takes the log between two pages: a copy of the first page would go on from where nobody asked for."""
    plane = Plane()
    entries = await a_conversation(plane)
    read = plane.log.read

    async def going(comm_id: CommId, *, after: int, limit: int, max_bytes: int | None = None) -> Sequence[StoredEntry]:
        page = await read(comm_id, after=after, limit=min(limit, 3), max_bytes=max_bytes)
        if after:
            plane.log.remove(ROOM)
        return page

    plane.log.read = going  # type: ignore[method-assign]
    await forked(plane, order(entries[-1].seq))
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and result.reason is Reason.FAILED and "removed" in result.content
    assert await plane.goals.find(COPY) is None


async def test_a_fork_that_ended_just_now_is_not_noted_as_open() -> None:
    """Whoever is cancelled while intake looks would be counted as open until its deadline."""
    plane = Plane()
    entries = await a_conversation(plane)
    put = plane.open_groups.put

    async def cancelled_meanwhile(comm_id: CommId, group: OpenGroup) -> None:
        plane.open_groups.put = put  # type: ignore[method-assign]
        await plane.setup.cancel(LOCAL, CancelGroup(goal_id=AGAIN))
        await put(comm_id, group)

    plane.open_groups.put = cancelled_meanwhile  # type: ignore[method-assign]
    await forked(plane, order(entries[-1].seq))
    assert await plane.reason(AGAIN) is Reason.CANCELLED and await plane.open_groups.find(COPY) is None


async def test_a_fork_opens_what_was_told_up_to_its_place_and_nothing_else() -> None:
    """A file told before is told to stand-ins too; one told in the original later is not, even to who names it by its digest."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:bob"))))
    told_early, told_late = await put(plane, BOB, b"early", "a"), await put(plane, BOB, b"late", "b")
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="One.", artifacts=(told_early,)))
    place = (await plane.entries())[-1].seq
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Two.", artifacts=(told_late,)))
    await plane.join(ADA, EVE)
    await forked(plane, order(place, replace=[{"old": BOB, "new": EVE}]))
    await plane.says(EVE, InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Mine.", artifacts=(told_late,)), comm_id=COPY)
    copied, named = [one.seq for one in await plane.entries(COPY) if files_of(one.entry.event)]
    assert await read(plane, EVE, copied, told_early, COPY) == b"early"
    with pytest.raises(NotFoundError, match="has told"):
        await read(plane, EVE, named, told_late, COPY)


async def test_the_end_of_a_fork_opens_nothing_that_its_leader_has_not_heard() -> None:
    """A conclusion that was said in the copy is no copy: who names a file that others were told alone reads it no more for that."""
    nodes = [{"name": "whisper", "roles": ["b", "c"], "heard_by": ["b", "c"], "tasks": True, "max": 3, "then": "talk"}]
    nodes += [{"name": "talk", "roles": ["a"], "max": 1}]
    document = {"team": "t", "leader": "a", "roles": {"a": "ada", "b": "bob", "c": "eve"}, "nodes": nodes}
    story = launched_under(team_of(document).policy, {"a": [ADA], "b": [BOB], "c": [EVE]}, ADA, BOB, EVE)
    plane = Plane()
    await plane.join(ADA, BOB, EVE)
    await plane.accept()
    launch, told = plane.begin(ROOM, ADA, BOB, EVE), story.log[0]
    assert isinstance(told, GroupLaunched)
    charter = told.charter.model_copy(update={"comm_id": ROOM, "limits": launch.charter.limits})
    await plane.ledgers[0].record(ROOM, launch.model_copy(update={"charter": charter}))
    await plane.says(BOB, SyncTaskAssignment(tasks=specs(("t1-1:eve",))))
    whispered = await put(plane, EVE, b"whispered", "w")
    await plane.says(EVE, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="x", artifacts=(whispered,)))
    await forked(plane, order((await plane.entries())[-1].seq))
    while not (state := await plane.state(COPY)).phase.is_terminal:
        [speaker] = state.floor
        closing = isinstance(state.stage, Concluding)
        said = Conclusion(content="Done.", artifacts=(whispered,)) if closing else Discussion(content=f"On {state.turn}.")
        await plane.says(speaker, said, comm_id=COPY)
    end = (await plane.entries(COPY))[-1]
    assert files_of(end.entry.event) == (whispered,) and ADA in end.entry.audience
    assert await read(plane, BOB, end.seq, whispered, COPY) == b"whispered"
    with pytest.raises(NotFoundError, match="has told"):
        await read(plane, ADA, end.seq, whispered, COPY)


async def test_a_fork_drafts_nobody_who_does_not_accept_its_owner_any_more() -> None:
    """Who has changed its card since is no more put into the copy than into a new group."""
    plane = Plane()
    entries = await a_conversation(plane)
    await plane.registry.register(Register(card=card(BOB, accepts=[])))
    await forked(plane, order(entries[-1].seq))
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and result.reason is Reason.NO_AGENT and "accepts no teams of the pool" in result.content


async def _lost(plane: Plane) -> int:
    """A goal in which bob is lost. Return where it stands."""
    await plane.open(ADA, BOB)
    await plane.ledgers[0].record(ROOM, MemberLost(at=plane.clock.now(), agent_id=BOB))
    return (await plane.entries())[-1].seq


async def test_lost_member_without_card_stays_lost_in_fork() -> None:
    """The fork continues without a member whose card was removed."""
    plane = Plane()
    at = await _lost(plane)
    await plane.join(BOB)
    del plane.cards.records[BOB]
    await forked(plane, order(at))
    assert (await plane.state(COPY)).living() == (ADA,) and COPY not in await plane.memberships.of(BOB)


async def test_replacement_member_in_fork_opens_no_file() -> None:
    """A message copied under the name of the file's owner gives other members no access to the file."""
    plane, mine = Plane(), GoalId("mine")
    room, mal = comm_id_of_goal(mine), AgentId("mal")
    await plane.open(ADA, BOB)
    secret = await put(plane, BOB, b"secret", "a")
    await plane.join(EVE, mal)
    await plane.accept(mine)
    ticket = ticket_of(MemoryTickets.key, GoalName(LOCAL, mine))
    await plane.setup.launch(LaunchGroup(owner=EVE, members=(mal,), goal_id=mine, ticket=ticket))
    await plane.says(EVE, AsyncTaskAssignment(tasks=specs(("t1-1:mal", "t1-2:mal"))), comm_id=room)
    await plane.says(mal, InformTaskProgress(task_id=TaskId("t1-2"), number=1), comm_id=room)
    stolen = InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="x", artifacts=(secret,))
    await plane.says(mal, stolen, comm_id=room)
    await forked(plane, order((await plane.entries(room))[-1].seq, of=mine, replace=[{"old": mal, "new": BOB}]))
    [copied] = [one.seq for one in await plane.entries(COPY) if files_of(one.entry.event)]
    with pytest.raises(NotFoundError, match="has told"):
        await read(plane, EVE, copied, secret, COPY)
    with pytest.raises(NotFoundError, match="rightly told"):
        await fetch(plane, secret, COPY)
    own = InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Mine.", artifacts=(secret,))
    await plane.says(BOB, own, comm_id=COPY)  # a client repeats the files of its earlier result
    for who in (EVE, BOB):
        with pytest.raises(NotFoundError, match="has told"):
            await read(plane, who, (await plane.entries(COPY))[-1].seq, secret, COPY)


async def test_fork_entry_opens_the_same_files_as_the_original() -> None:
    """The owner's own message about a file does not make an earlier message by another member valid."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:eve", "t1-2:bob"))))
    file = await put(plane, BOB, b"told", "a")
    for who, task_id in ((EVE, "t1-1"), (BOB, "t1-2")):
        told = InformTaskResult(task_id=TaskId(task_id), task_conclusion="x", artifacts=(file,))
        await plane.says(who, told)
    await forked(plane, order((await plane.entries())[-1].seq))
    for room in (ROOM, COPY):
        by_another, by_its_owner = [one.seq for one in await plane.entries(room) if files_of(one.entry.event)]
        assert await read(plane, ADA, by_its_owner, file, room) == b"told"
        with pytest.raises(NotFoundError, match="has told"):
            await read(plane, ADA, by_another, file, room)


@pytest.mark.parametrize(
    "cards",
    [
        {BOSS: {"accepts": []}, BUYER: {"accepts": ["boss"]}},
        {BOSS: {}, BUYER: {"accepts": ["boss"]}},
        {BOSS: {"accepts": []}, BUYER: {}},
        {BOSS: {"accepts": [], "pool": "shop"}, BUYER: {"accepts": [], "pool": "shop"}},
    ],
    ids=["neither", "not who serves", "not who leads", "one pool"],
)
async def test_fork_with_members_that_reject_the_leader_fails(cards: Mapping[AgentId, Mapping[str, object]]) -> None:
    """A user cannot draft an agent into a fork whose leader or opener the agent's card does not accept."""
    plane = Plane()
    at = await _a_task_of_pub(plane, cards)
    await forked(plane, order(at, say="Buy all of it.", replace=_in_places(hand=BUYER, pub=BOSS)))
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and result.reason is Reason.NO_AGENT and "accepts no teams of the pool pub" in result.content
    assert await plane.memberships.of(BUYER) == await plane.memberships.of(BOSS) == []


async def test_lost_member_that_rejects_the_leader_fails_the_fork() -> None:
    """The lost member's current card decides."""
    plane = Plane()
    at = await _lost(plane)
    await plane.registry.register(Register(card=card(BOB, accepts=[])))
    await forked(plane, order(at))
    result = await plane.results.get(GoalName(LOCAL, AGAIN))
    assert result is not None and result.reason is Reason.NO_AGENT and "bob cannot join: its card accepts no" in result.content


async def test_lost_member_invited_into_a_fork_is_checked_again() -> None:
    """Membership of the original group gives no membership of the copy."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.join(EVE)
    invitation = InviteMember(comm_id=ROOM, by=ADA, turn=1, agent_id=EVE)
    await plane.setup.invite(invitation)
    await plane.ledgers[0].record(ROOM, MemberLost(at=plane.clock.now(), agent_id=EVE))
    del plane.cards.records[EVE]
    await forked(plane, order((await plane.entries())[-1].seq))
    await plane.registry.register(Register(card=card(EVE, accepts=[])))
    with pytest.raises(NoAgentError, match="accepts no teams"):
        await plane.setup.invite(invitation.model_copy(update={"comm_id": COPY}))
    assert COPY not in await plane.memberships.of(EVE)
