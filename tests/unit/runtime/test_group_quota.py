"""What one group takes of the store is bounded, and a group at its bound can be brought to its end by any router."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.errors import RateLimitedError, UnavailableError
from ioa.group.events import Entry, GroupLaunched, MemberLost, MemberReturned, Said, SubgroupOpened, encode_entry
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError
from ioa.group.requests import Accepted, CancelGroup, InviteMember, LaunchGroup, Rejected
from ioa.group.state import Awaiting, Discussing
from ioa.ports.group_log import StoredEntry
from ioa.ports.inspection import FILLING
from ioa.ports.store_room import StoreRoom
from ioa.protocol.codec import encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, TaskId, UserId, comm_id_of_task
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pass,
    PassCause,
    SyncTaskAssignment,
    TaskQuestion,
)
from ioa.protocol.policy import FormField
from ioa.protocol.policy_check import MAX_STATE_BYTES
from ioa.quotas import LOG_UNIT_BYTES, Family, Rate
from ioa.runtime.appended import Appended, user_as_filling
from ioa.runtime.group_quota import GroupQuota
from ioa.runtime.stored_shares import StoredShares
from ioa.testing.manual_clock import NEW_YEAR
from tests.unit.group.scenario import launched, specs
from tests.unit.runtime.plane import ADA, BOB, EVE, LEASE, ROOM, Plane


async def test_a_group_gives_out_so_many_tasks_in_all() -> None:
    """Tasks that are done, and have left the state, count too; each router says so to who gives out more, and what it can do."""
    plane = Plane(GroupQuota(tasks=3))
    await plane.open(ADA, BOB)
    for _ in range(2):
        await plane.says(ADA, given := await _one_task(plane))
        await plane.says(BOB, InformTaskResult(task_id=given.tasks[0].task_id, task_conclusion="Done."))
    turn = (await plane.state()).turn
    two = SyncTaskAssignment(tasks=specs((f"t{turn}-1:bob", f"t{turn}-2:bob")))
    for router in (0, 1):
        refused = await plane.says(ADA, two, router=router)
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.legal) == ("too_many_tasks", ("CONCLUDE_GROUP_DISCUSSION", "PASS"))
        assert refused.message.startswith("This group has given out 2 tasks, and a group may give out 3.")
    assert not isinstance(await plane.says(ADA, await _one_task(plane)), Rejected)


async def test_a_group_that_has_filled_its_log_can_only_be_concluded() -> None:
    """What begins something is refused by each router; an eighth is kept for results of tasks, and the conclusion is taken."""
    plane = Plane(GroupQuota(log_bytes=40_000))
    await plane.open(ADA, BOB)
    await plane.says(ADA, Discussion(content="a" * 32_000, next_speaker=BOB))
    await plane.says(BOB, given := await _one_task(plane))
    for router in (0, 1):
        plane.ledgers[router].forget()
    task_id: TaskId = given.tasks[0].task_id
    result = await plane.says(BOB, InformTaskResult(task_id=task_id, task_conclusion="c" * 9_000))
    refused = [await plane.says(BOB, Discussion(content="b", next_speaker=ADA), router=router) for router in (0, 1)]
    assert not isinstance(result, Rejected)
    assert [(one.code, one.legal) for one in refused if isinstance(one, Rejected)] == [
        ("too_little_left", ("CONCLUDE_GROUP_DISCUSSION",))
    ] * 2
    await plane.says(BOB, ConcludeGroupDiscussion())
    await plane.says(BOB, Conclusion(content="d" * 9_000))
    assert await plane.reason() is Reason.CONCLUDED


_LATER = NEW_YEAR + timedelta(minutes=30)
OTHER = comm_id_of_task(ROOM, TaskId("t1-2"))
NESTED = comm_id_of_task(ROOM, TaskId("t1-1"))


async def _held(plane: Plane, comm_id: CommId = ROOM) -> tuple[int, int | None]:
    """What a group's log holds, by its head, and what it may hold."""
    head = (await plane.entries(comm_id))[-1]
    return head.log_bytes, head.log_most


async def _nested(plane: Plane) -> None:
    """Open a group with a task, and a nested team for it."""
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:eve"))))
    await plane.nest("t1-1", BOB, EVE)


async def test_a_nested_team_takes_its_log_from_its_parents() -> None:
    """It may fill half of what its part of the turns comes to, and no more; that is set aside until its end."""
    plane = Plane(GroupQuota(log_bytes=400_000))
    await _nested(plane)
    _, lent = await _held(plane, NESTED)
    assert lent == 400_000 * 4 // 10 // 2
    own = sum(stored.size_bytes for stored in await plane.entries())
    assert (await _held(plane))[0] == own + lent
    for ledger in plane.ledgers:
        ledger.forget()
    for router, (one, other) in enumerate(((BOB, EVE), (EVE, BOB), (BOB, EVE))):
        said = Discussion(content=str(router) * 30_000, next_speaker=other)
        assert not isinstance(await plane.says(one, said, comm_id=NESTED, router=router % 2), Rejected)
    refused = await plane.says(EVE, Discussion(content="b", next_speaker=BOB), comm_id=NESTED)
    assert isinstance(refused, Rejected)
    assert (refused.code, refused.legal) == ("too_little_left", ("CONCLUDE_GROUP_DISCUSSION",))
    await plane.says(EVE, ConcludeGroupDiscussion(), comm_id=NESTED)
    await plane.says(EVE, Conclusion(content="Five."), comm_id=NESTED)
    both = [stored.size_bytes for comm_id in (ROOM, NESTED) for stored in await plane.entries(comm_id)]
    assert await _held(plane) == (sum(both), None)


async def test_a_full_log_lends_nothing_and_takes_nobody_in() -> None:
    """What nested teams have filled counts as well: then none is opened any more, nor anybody invited."""
    plane = Plane(GroupQuota(log_bytes=400_000))
    await plane.open(ADA, BOB)
    await plane.join(EVE)
    await _fill(plane)
    invited = (await plane.setup.invite(InviteMember(comm_id=ROOM, by=ADA, turn=1, agent_id=EVE))).answer
    plane = Plane(GroupQuota(log_bytes=400_000))
    await _nested(plane)
    await _fill(plane)
    with pytest.raises(IllegalEventError) as full:
        await plane.ledgers[1].record(ROOM, SubgroupOpened(at=plane.clock.now(), task_id=TaskId("t1-2"), by=EVE, subgroup=OTHER))
    assert isinstance(invited, Rejected)
    assert (full.value.code, invited.code) == ("too_little_left", "too_little_left")


def _with_little(little_bytes: int) -> Appended:
    return Appended(lambda: 0.0, filling=StoredShares(lambda: 0.0, FILLING, little_bytes=little_bytes))


async def test_who_fills_the_logs_of_all_leaves_room_for_others() -> None:
    """As long as there is room nobody is refused; then who has most waits, or brings its groups to their end, and is named.

    Nobody is told to conclude, and who has had little appended is never put off: that the store is full is not his doing.
    """
    plane = Plane(appended=(appended := _with_little(12_000)))
    await plane.open(ADA, BOB, max_turns=30)
    plane.log.free_bytes = 1_000_000
    await plane.says(ADA, Discussion(content="a" * 16_000, next_speaker=BOB))
    await plane.says(BOB, Discussion(content="b", next_speaker=ADA))
    plane.log.free_bytes = 2_000
    with pytest.raises(RateLimitedError, match="others need what is left"):
        await plane.says(ADA, Discussion(content="b", next_speaker=BOB))
    assert [(one.caller, one.family) for one in appended.slowed()] == [("ada", FILLING)]
    plane.log.free_bytes = 1_000_000
    await plane.says(ADA, Discussion(content="c", next_speaker=BOB))
    plane.log.free_bytes = 0
    assert not isinstance(await plane.says(BOB, Discussion(content="d", next_speaker=ADA)), Rejected)
    await plane.says(ADA, ConcludeGroupDiscussion())
    await plane.says(ADA, Conclusion(content="e"))
    assert await plane.reason() is Reason.CONCLUDED


async def test_nobody_is_counted_in_a_group_that_may_not_be_launched_now() -> None:
    """Who has filled the logs is put off; whom he names waits for no group until that goal's deadline."""
    plane = Plane(appended=_with_little(12_000))
    await plane.open(ADA, BOB, max_turns=30)
    await plane.join(EVE)
    plane.log.free_bytes = 1_000_000
    await plane.says(ADA, Discussion(content="a" * 16_000, next_speaker=BOB))
    another = GoalId("another")
    await plane.accept(another)
    plane.log.free_bytes = 2_000
    launch = LaunchGroup(owner=ADA, members=(EVE,), goal_id=another)
    with pytest.raises(RateLimitedError, match="others need what is left"):
        await plane.setup.launch(launch)
    assert list(await plane.memberships.of(EVE)) == []
    plane.log.free_bytes = 1_000_000
    launched = await plane.setup.launch(launch)
    assert list(await plane.memberships.of(EVE)) == [launched.state.comm_id]


async def test_what_one_user_has_an_agent_fill_is_not_held_against_it_in_goals_of_others() -> None:
    """Both are named. Beyond nine tenths neither goes on with others, since nobody can tell whose doing it was."""
    plane, appended = Plane(), _with_little(1_000)
    await plane.open(ADA, BOB)
    [first] = await plane.log.read(ROOM, after=0, limit=1)
    anna, eve, launched = UserId("anna"), UserId("eve"), first.entry.event
    assert isinstance(launched, GroupLaunched)
    by_bob = launched.model_copy(update={"charter": launched.charter.model_copy(update={"owner": BOB})})
    of_eve = first.entry.model_copy(update={"state": first.entry.state.model_copy(update={"user": eve})})
    appended.note(of_eve, 100_000)
    room = StoreRoom(20_000, 120_000)
    with pytest.raises(RateLimitedError, match="ada for eve has filled"):
        appended.check_room(launched, eve, room)
    appended.check_room(launched, anna, room)
    appended.check_room(by_bob, eve, room)
    assert [(one.caller, one.family) for one in appended.slowed()] == [("ada for eve", FILLING)]
    room = StoreRoom(10_000, 110_000)
    with pytest.raises(RateLimitedError, match="ada has filled"):
        appended.check_room(launched, anna, room)
    with pytest.raises(RateLimitedError, match="user:eve has filled"):
        appended.check_room(by_bob, eve, room)
    appended.check_room(by_bob, anna, room)


def test_who_fills_the_logs_in_two_ways_is_told_of_once() -> None:
    """What was forked for a user counts by itself, and with what agents say in his goals: the doctor names him with the greater."""
    eve, filling = UserId("eve"), StoredShares(lambda: 0.0, FILLING)
    appended, forked = Appended(lambda: 0.0, filling=filling), launched("ada", "bob").log[0]
    assert isinstance(forked, GroupLaunched)
    state = step(None, forked).state.model_copy(update={"user": eve})
    appended.note(Entry(event=forked, state=state, audience=()), 100_000_000)
    filling.note(user_as_filling(eve), 50_000_000)
    room = StoreRoom(1_000_000, 200_000_000)
    assert filling.puts_off(user_as_filling(eve), room)
    with pytest.raises(RateLimitedError):
        appended.check_room(forked, eve, room)
    assert sorted((one.caller, one.refused) for one in appended.slowed()) == [("ada", 100), ("ada for eve", 100), ("user:eve", 100)]


def test_the_little_that_each_may_always_have_is_a_part_of_the_share() -> None:
    """Else ten keys fill a share of 40 MB, each with 4 MB of it; of a large one it is 4 MB."""
    filling = StoredShares(lambda: 0.0, FILLING)
    filling.note("ada", 3_000_000)
    assert [filling.puts_off("ada", StoreRoom(0, share)) for share in (40_000_000, 1_000_000_000)] == [True, False]


async def test_who_has_filled_the_logs_ends_his_groups_in_few_words() -> None:
    """A conclusion is stored twice and counts so; from nine tenths on only short ones are taken."""
    plane = Plane(appended=_with_little(1_000))
    await plane.open(ADA, BOB, max_turns=30)
    await plane.says(ADA, Discussion(content="a" * 16_000, next_speaker=BOB))
    await plane.says(BOB, Discussion(content="b", next_speaker=ADA))
    await plane.says(ADA, ConcludeGroupDiscussion())
    plane.log.free_bytes = 1_000
    with pytest.raises(RateLimitedError, match="in few words"):
        await plane.says(ADA, Conclusion(content="a" * 17_000))
    assert not isinstance(await plane.says(ADA, Conclusion(content="a" * 1_000)), Rejected)
    assert await plane.reason() is Reason.CONCLUDED


async def test_results_take_no_more_than_nineteen_twentieths() -> None:
    """A result carries the state of its group, and one user's goals may have 25,600: who has had so much waits with them, too."""
    plane = Plane(appended=(appended := _with_little(1_000)))
    await plane.open(ADA, BOB, max_turns=30)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(tuple(f"t1-{at}:bob" for at in range(1, 4)))))

    async def report(at: int) -> Accepted | Rejected:
        return await plane.says(BOB, InformTaskResult(task_id=TaskId(f"t1-{at}"), task_conclusion="a" * 9_000))

    assert isinstance(await report(1), Accepted)
    plane.log.free_bytes = round(appended._filling.held("bob") / 12)
    assert isinstance(await report(2), Accepted)
    plane.log.free_bytes = round(appended._filling.held("bob") / 20)
    with pytest.raises(RateLimitedError, match="others need what is left"):
        await report(3)
    plane.log.free_bytes = 10_000_000
    assert isinstance(await report(3), Accepted)


async def test_results_wait_by_what_was_filled_in_goals_of_the_same_user() -> None:
    """Else one user's goals would have the tasks of an agent fail that it has in goals of others."""
    plane, appended = Plane(), _with_little(1_000)
    await plane.open(ADA, BOB)
    [first] = await plane.log.read(ROOM, after=0, limit=1)
    anna, eve, room = UserId("anna"), UserId("eve"), StoreRoom(5_000, 105_000)
    appended.note(first.entry.model_copy(update={"state": first.entry.state.model_copy(update={"user": eve})}), 100_000)
    result = InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Done.")
    by_ada, by_bob = [Said(at=plane.clock.now(), message=await plane.message(sender, result, turn=1)) for sender in (ADA, BOB)]
    for said in (by_ada, by_bob):
        with pytest.raises(RateLimitedError):
            appended.check_room(said, eve, room)
        appended.check_room(said, anna, room)
    last = await plane.message(ADA, ConcludeGroupDiscussion(conclusion=Conclusion(content="Done.")))
    appended.check_room(Said(at=plane.clock.now(), message=last), eve, room)


async def test_a_group_passes_on_no_further_than_its_log_reaches() -> None:
    """Who has nobody to hand the floor to, or an accomplice, passes for ever, and no turn is used up."""
    plane = Plane(GroupQuota(log_bytes=40_000))
    await plane.open(ADA)
    away, answers = Pass(cause=PassCause.MODEL_UNAVAILABLE), list[Accepted | Rejected]()
    for number in range(40):
        answers.append(await plane.says(ADA, away, router=number % 2))
    last = answers[-1]
    assert isinstance(last, Rejected)
    assert (last.code, last.legal) == ("too_little_left", ("CONCLUDE_GROUP_DISCUSSION",))
    assert isinstance(answers[0], Accepted)
    assert (await _held(plane))[0] < 48_000
    await plane.says(ADA, ConcludeGroupDiscussion(conclusion=Conclusion(content="Nothing.")))
    assert await plane.reason() is Reason.CONCLUDED


async def test_who_has_filled_the_logs_passes_on_no_more() -> None:
    """A pass ends nothing: it waits as what begins something, and its floor runs out."""
    plane = Plane(appended=_with_little(1_000))
    await plane.open(ADA, BOB, max_turns=30)
    await plane.says(ADA, Discussion(content="a" * 16_000, next_speaker=BOB))
    await plane.says(BOB, Discussion(content="b", next_speaker=ADA))
    plane.log.free_bytes = 1_000
    with pytest.raises(RateLimitedError, match="others need what is left"):
        await plane.says(ADA, Pass(cause=PassCause.MODEL_UNAVAILABLE))


async def test_entries_are_charged_to_who_has_caused_them() -> None:
    """By their own bytes and those to whom they are shown, and not by the bytes of what was said; another speaks meanwhile."""
    now = 0.0
    appended = Appended(lambda: now, Rate(10, 25, answer_bytes=LOG_UNIT_BYTES))
    plane = Plane(appended=appended)
    await plane.open(ADA, BOB, max_turns=30)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(tuple(f"t1-{at}:bob" for at in range(1, 5)))))
    asked = {"text": "𐍈" * 2_000, "until": plane.clock.now() + timedelta(minutes=9), "default": "No."}
    for at in range(1, 3):
        taken = await plane.says(BOB, TaskQuestion(task_id=TaskId(f"t1-{at}"), number=1, **asked))
        assert not isinstance(taken, Rejected), taken
    with pytest.raises(RateLimitedError) as refused:
        await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-4"), number=1))
    assert refused.value.retry_after is not None and refused.value.retry_after > timedelta(seconds=1)
    assert [(one.caller, one.family) for one in appended.slowed()] == [("bob", Family.LOGS)]
    now = 120.0
    assert not isinstance(await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-4"), number=1)), Rejected)


async def test_who_says_the_same_again_is_charged_with_what_is_pushed_again() -> None:
    """A copy of some hundred bytes of a large message, which is the last one, has it pushed to all members once more."""
    now, members = 0.0, tuple(AgentId(f"m{number}") for number in range(31))
    plane = Plane(appended=(appended := Appended(lambda: now, Rate(100, 400, answer_bytes=LOG_UNIT_BYTES))))
    await plane.open(ADA, *members, max_turns=30)
    message = await plane.message(ADA, Discussion(content="a" * 100_000, next_speaker=members[0]))
    first = await plane.send(message)
    assert isinstance(first, Accepted)
    now = 60.0
    again, pushed = message.model_copy(update={"payload": Discussion(content="a", next_speaker=members[0])}), 0
    for second in range(60, 120):
        now = float(second)
        plane.clock.advance(timedelta(seconds=1))
        try:
            assert await plane.send(again, router=second % 2) == Accepted(seq=first.seq)
        except RateLimitedError:
            continue
        pushed += len(members)
    assert sum(len(plane.inboxes.of(one)) for one in members) == len(members) * 2 + pushed
    assert 20 < pushed / len(members) < 36  # of 60 times, 210 kB each, at 100 kB a second and 400 at once
    assert [(one.caller, one.family) for one in appended.slowed()] == [("ada", Family.LOGS)]


async def test_who_says_the_same_again_is_charged_with_what_is_read_for_it_again() -> None:
    """What a group owes is done again: a router reads where each nested team stands that has not told that it has ended."""
    plane = Plane()
    await plane.open(ADA, BOB)
    message = await plane.message(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    assert isinstance(first := await plane.send(message), Accepted)
    await plane.nest("t1-1", BOB)
    await plane.setup.cancel(LOCAL, CancelGroup(comm_id=ROOM))
    read = dict[int, int]()
    nested, head = (await plane.entries(NESTED))[-1].size_bytes, (await plane.entries())[-1].size_bytes

    def take(_sender: AgentId, size_bytes: int) -> None:
        read[size_bytes] = read.get(size_bytes, 0) + 1

    plane.reads.take = plane.reads.charge = take  # type: ignore[assignment,method-assign]
    assert await plane.send(message) == Accepted(seq=first.seq)
    assert (read[nested], read[head]) == (1, 3)  # the latter twice to judge it, and to see whether it is the last


async def test_looking_at_a_group_reads_no_nested_team_that_has_ended() -> None:
    """A member may have dozens, whose last entries have 0.8 MB each, and have the group looked at again and again."""
    plane = Plane()
    await _nested(plane)
    await plane.says(BOB, ConcludeGroupDiscussion(conclusion=Conclusion(content="Done.")), comm_id=NESTED)
    await plane.nest("t1-2", EVE)
    read = _reads_of(plane)
    for _ in range(3):
        await plane.routers[0].fire_timer(ROOM)
    assert set(read) == {ROOM}
    await plane.says(EVE, InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Done."))
    read.clear()
    await plane.routers[0].fire_timer(ROOM)
    assert set(read) == {ROOM}


async def test_a_nested_team_is_told_once_what_was_answered() -> None:
    """It is owed until the task is closed; a router that was not there before tells it, too."""
    plane = Plane()
    await _nested(plane)
    until = plane.clock.now() + timedelta(minutes=9)
    await plane.says(BOB, AskUser(text="Which?", options=("a", "b"), default="a", until=until), comm_id=NESTED)
    answer = Decision(task_id=TaskId("t1-1"), choice="a")
    assert isinstance(await plane.says(ADA, answer), Accepted)
    read = _reads_of(plane)
    for router in (0, 0, 0, 1, 1):
        await plane.routers[router].fire_timer(ROOM)
    assert read.count(NESTED) == 1


async def test_a_nested_team_is_told_again_what_was_answered_where_its_log_has_lost_it() -> None:
    """A server that comes back may have lost the last entries of one log, and not those of another."""
    plane = Plane()
    await _nested(plane)
    until = plane.clock.now() + timedelta(minutes=9)
    await plane.says(BOB, AskUser(text="Which?", options=("a", "b"), default="a", until=until), comm_id=NESTED)
    await plane.says(ADA, Decision(task_id=TaskId("t1-1"), choice="a"))
    plane.log._entries[NESTED].pop()
    assert isinstance((await plane.state(NESTED)).stage, Awaiting)
    for ledger in plane.ledgers:
        ledger.forget()
    await plane.routers[0].fire_timer(ROOM)
    assert isinstance((await plane.state(NESTED)).stage, Discussing)


def _reads_of(plane: Plane) -> list[CommId]:
    """A list to which it is added whose last entry is read from now on."""
    read, last = list[CommId](), plane.log.last

    async def noted(comm_id: CommId) -> StoredEntry | None:
        read.append(comm_id)
        return await last(comm_id)

    plane.log.last = noted  # type: ignore[method-assign]
    return read


async def test_who_is_lost_and_back_again_and_again_fills_the_logs_of_his_groups() -> None:
    """He is charged with what is said of it, and stays lost while others need the room; that he is lost is always said."""
    plane = Plane(appended=(appended := _with_little(12_000)))
    await plane.open(ADA, BOB, max_turns=30)
    at = plane.clock.now()
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:ada",))))
    words = tuple(f"{at:02}" + "a" * 190 for at in range(16))
    question = TaskQuestion(task_id=TaskId("t1-1"), number=1, text="a" * 2_000, options=words, default=words[0], until=_LATER)
    await plane.says(ADA, question)
    ledger, plane.log.free_bytes = plane.ledgers[0], 1_000_000
    for _ in range(2):
        await ledger.record(ROOM, MemberLost(at=at, agent_id=BOB))
        await ledger.record(ROOM, MemberReturned(at=at, agent_id=BOB))
    plane.log.free_bytes = 2_000
    await ledger.record(ROOM, MemberLost(at=at, agent_id=BOB))
    with pytest.raises(RateLimitedError, match="bob has filled"):
        await ledger.record(ROOM, MemberReturned(at=at, agent_id=BOB))
    assert [(one.caller, one.family) for one in appended.slowed()] == [("bob", FILLING)]
    plane.log.free_bytes = 1_000_000
    await ledger.record(ROOM, MemberReturned(at=at, agent_id=BOB))
    assert not (await plane.state()).members[1].lost


async def test_who_flaps_too_often_stays_lost_for_a_while() -> None:
    """Group setup tells groups of his return as soon as he may have more appended; others are told of at once."""
    now = 0.0
    plane = Plane(appended=Appended(lambda: now, Rate(1, 4, answer_bytes=LOG_UNIT_BYTES)))
    await plane.open(ADA, BOB, EVE)
    at = plane.clock.now()
    with pytest.raises(UnavailableError):
        for _ in range(9):
            await plane.ledgers[0].record(ROOM, MemberLost(at=at, agent_id=BOB))
            await plane.watch.reconcile(BOB)
    await plane.ledgers[0].record(ROOM, MemberLost(at=at, agent_id=EVE))
    await plane.watch.reconcile(EVE)
    assert [member.lost for member in (await plane.state()).members] == [False, True, False]
    now = 60.0
    await plane.watch.reconcile(BOB)
    assert [member.lost for member in (await plane.state()).members] == [False, False, False]


async def test_who_is_back_waits_in_no_group_for_what_another_has_made_large() -> None:
    """Each may have as much said of it among groups that one member makes large, and launches as before."""
    now = 0.0
    plane = Plane(appended=Appended(lambda: now, Rate(1, 20, answer_bytes=LOG_UNIT_BYTES)))
    await plane.join(ADA, BOB, EVE)
    large, honest = [CommId(f"large-{number}") for number in range(9)], CommId("honest")
    for room in large:
        await _begin(plane, room, EVE, BOB)
        now += 60.0
        given = AsyncTaskAssignment(tasks=specs(("t1-1:eve",)))
        question = TaskQuestion(task_id=TaskId("t1-1"), number=1, text="a" * 2_000, default="a" * 2_000, until=_LATER)
        for said in (given, question):
            assert isinstance(await plane.says(EVE, said, comm_id=room), Accepted)
    await _begin(plane, honest, ADA, BOB)
    now += 60.0
    for ledger in plane.ledgers:
        ledger.check_may_append(BOB)
    plane.clock.advance(LEASE)
    await plane.join(ADA, EVE)
    await plane.watch.reconcile(BOB)
    await plane.join(BOB)
    with pytest.raises(UnavailableError):
        await plane.watch.reconcile(BOB)
    told = [BOB in (await plane.state(room)).living() for room in (*large, honest)]
    assert (0 < told.count(True) < 9, told[-1]) == (True, True)
    plane.ledgers[0].check_may_append(BOB)
    plane.ledgers[0].check_may_append(EVE)


async def test_a_deadline_counts_for_who_has_put_most_into_the_group_and_not_for_who_asks_a_little() -> None:
    """Who gives out many tasks has an honest member ask in one of them: what passes then is not that one's."""
    now = 0.0
    plane = Plane(appended=Appended(lambda: now, Rate(1, 40, answer_bytes=LOG_UNIT_BYTES)))
    await plane.open(EVE, ADA, BOB, max_turns=30)
    timeout = timedelta(seconds=1)
    tasks = specs(("t1-1:bob", *(f"t1-{at}:ada" for at in range(2, 33))))
    timed = tuple([task.model_copy(update={"timeout": timeout * number}) for number, task in enumerate(tasks, 1)])
    await plane.says(EVE, AsyncTaskAssignment(tasks=(timed[0].model_copy(update={"timeout": None}), *timed[1:])))
    await plane.says(BOB, TaskQuestion(task_id=TaskId("t1-1"), number=1, text="Which?", default="a", until=_LATER))
    now += 60.0
    for ledger in plane.ledgers:
        for agent_id in (BOB, EVE):
            ledger.check_may_append(agent_id)
    for _ in range(9):
        plane.clock.advance(timedelta(seconds=2))
        await plane.routers[0].fire_timer(ROOM)
    plane.ledgers[0].check_may_append(BOB)
    with pytest.raises(RateLimitedError):
        plane.ledgers[0].check_may_append(EVE)


async def test_a_deadline_that_passes_is_charged_to_who_asks_most() -> None:
    """Else nobody would pay for entries that a member has made large, or the owner who has let him join."""
    plane = Plane(appended=_with_little(90_000))
    await plane.open(ADA, BOB, EVE, max_turns=30)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(tuple(f"t1-{at}:bob" for at in range(1, 6)))))
    asked = {"text": "a" * 2_000, "default": "a" * 2_000, "until": plane.clock.now() + timedelta(minutes=30)}
    for at in range(1, 5):
        await plane.says(BOB, TaskQuestion(task_id=TaskId(f"t1-{at}"), number=1, **asked))
    plane.log.free_bytes = 0
    assert not isinstance(await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-5"), number=1)), Rejected)
    plane.clock.advance(timedelta(seconds=31))
    await plane.routers[0].fire_timer(ROOM)
    with pytest.raises(RateLimitedError, match="bob has filled"):
        await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-1"), number=1))
    await plane.says(ADA, Discussion(content="b", next_speaker=EVE))  # which is not put off


async def test_who_has_filled_the_logs_keeps_no_task_open() -> None:
    """A report that is no entry renews a lease, which is one: it is put off, while that of another is heard."""
    plane = Plane(appended=_with_little(6_000))
    await plane.open(ADA, BOB, EVE, max_turns=30)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:eve"))))
    await plane.says(BOB, TaskQuestion(task_id=TaskId("t1-1"), number=1, text="a" * 2_000, default="No.", until=_LATER))
    for agent_id, task_id in ((BOB, "t1-1"), (EVE, "t1-2")):
        await plane.says(agent_id, InformTaskProgress(task_id=TaskId(task_id), number=1))
    plane.log.free_bytes = 0
    held = len(await plane.entries())
    plane.clock.advance(timedelta(seconds=5))
    assert isinstance(await plane.says(EVE, InformTaskProgress(task_id=TaskId("t1-2"), number=2)), Accepted)
    with pytest.raises(RateLimitedError, match="bob has filled"):
        await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-1"), number=2))
    assert len(await plane.entries()) == held


async def test_each_entry_carries_so_much_of_what_is_open() -> None:
    """A question or a task too many is refused, with what is legal still, until something is answered."""
    plane = Plane(GroupQuota(tasks=300))
    await plane.open(ADA, BOB, max_turns=30)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(tuple(f"t1-{at}:bob" for at in range(1, 10)))))
    words = tuple(f"{at:02}" + "𐍈" * 198 for at in range(16))
    asked = {"text": "𐍈" * 2_000, "options": words, "default": words[0], "until": _LATER}
    taken = [await plane.says(BOB, TaskQuestion(task_id=TaskId(f"t1-{at}"), number=1, **asked)) for at in range(1, 7)]
    size = len(encode(await plane.state()))
    assert ([isinstance(one, Accepted) for one in taken], 100_000 < size < 125_000) == ([True] * 5 + [False], True)
    assert isinstance(taken[-1], Rejected) and taken[-1].code == "too_little_left"
    assert "120,000 are the most" in taken[-1].message
    await plane.says(ADA, Decision(task_id=TaskId("t1-1"), choice=words[1]))
    assert isinstance(await plane.says(BOB, TaskQuestion(task_id=TaskId("t1-6"), number=1, **asked)), Accepted)


async def _begin(plane: Plane, room: CommId, *agents: AgentId) -> None:
    """Begin a group."""
    await plane.ledgers[0].record(room, plane.begin(room, *agents))
    await plane.memberships.add(agents, room)


async def _fill(plane: Plane) -> None:
    """Have the group's log hold nearly as much as it may; no router remembers how it was before."""
    head = (await plane.entries())[-1]
    await plane.log.append(ROOM, encode_entry(head.entry), expected_seq=head.seq, log_bytes=395_000)
    for ledger in plane.ledgers:
        ledger.forget()


@pytest.mark.parametrize(("letters", "is_taken"), [(22, True), (23, False)])
async def test_a_question_carries_no_more_than_a_policy_would(letters: int, is_taken: bool) -> None:
    """Four fields of sixteen options, four bytes a letter: what is more than a policy may add to each entry is refused."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    before = len(encode(await plane.state()))
    fields = [
        FormField(name=f"f{at}", kind="option", options=tuple(f"{at:02}" + "𐍈" * letters for at in range(16))) for at in range(4)
    ]
    asked = await plane.says(ADA, Discussion(content="Well?", question=tuple(fields), next_speakers=(BOB, EVE)))
    assert (isinstance(asked, Rejected), len(encode(await plane.state())) - before < MAX_STATE_BYTES) == (not is_taken, True)
    if isinstance(asked, Rejected):
        assert (asked.code, "DISCUSSION" in asked.legal) == ("bad_form", True)


async def _one_task(plane: Plane) -> SyncTaskAssignment:
    return SyncTaskAssignment(tasks=specs((f"t{(await plane.state()).turn}-1:bob",)))
