"""Deciding about messages and deadlines: the same answer however often it is asked, and nothing for strangers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgpack
import pytest

from ioa.errors import ForbiddenError, InvalidInputError, NotFoundError, PayloadTooLargeError, SupersededError, UnavailableError
from ioa.group.events import LaunchAbandoned, Said, TimerFired
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Accepted, CancelGroup, Rejected, SayReply
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, PoolId, SessionId, TaskId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    Message,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.open_groups import OpenGroup
from ioa.protocol.registry import Register
from ioa.protocol.subjects import say
from tests.rig.memory_log import Mishap
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, Plane, messages_of, session

T1 = TaskId("t1-1")


async def test_a_repeated_message_gets_the_first_answer(opened: Plane) -> None:
    """A message that is in the log is accepted with its sequence again, by any replica, also after others have spoken."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    first = await opened.send(message)
    await opened.says(BOB, Discussion(content="No, you.", next_speaker=ADA), router=1)
    again = [await opened.send(message, router) for router in (0, 1)]
    assert isinstance(first, Accepted)
    assert again == [Accepted(seq=first.seq)] * 2
    assert len(await opened.entries()) == 3


async def test_a_message_under_the_id_of_anothers_is_not_that_one(opened: Plane) -> None:
    """Who guesses the id that another's message has learns nothing by it, and takes nothing from who has said that."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    first = await opened.send(message)
    guessed = await opened.message(BOB, Conclusion(content="Mine."))
    header = guessed.header.model_copy(update={"message_id": message.header.message_id, "after": 0})
    assert isinstance(await opened.send(guessed.model_copy(update={"header": header})), Rejected)
    assert await opened.send(message) == Accepted(seq=first.seq if isinstance(first, Accepted) else 0)
    own = await opened.message(BOB, Discussion(content="No, you.", next_speaker=ADA))
    said = own.model_copy(update={"header": own.header.model_copy(update={"message_id": message.header.message_id, "after": 0})})
    answers = [await opened.send(said, router) for router in (1, 0)]
    assert [one.seq for one in answers if isinstance(one, Accepted)] == [3, 3]


async def test_speaker_receives_entry_in_reply_and_no_push(opened: Plane) -> None:
    """The others are pushed what the speaker is answered with, each the same."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    reply = decode(SayReply, await opened.routers[0].say(say(PoolId(ADA), ADA, ROOM), encode(message))).answer
    assert isinstance(reply, Accepted)
    assert (list(opened.inboxes.of(BOB)[1:]), list(opened.inboxes.of(ADA)[1:])) == ([reply.entry], [])


async def test_the_last_message_may_be_repeated_too(opened: Plane) -> None:
    """A conclusion whose answer was lost is accepted again although the group has ended."""
    await opened.says(ADA, ConcludeGroupDiscussion())
    message = await opened.message(ADA, Conclusion(content="Ten."))
    opened.log.fail_next_append(Mishap.STORED_UNANSWERED)
    answers = [await opened.send(message, router) for router in (0, 1, 0)]
    assert answers == [Accepted(seq=(await opened.entries())[-1].seq)] * 3
    assert await opened.reason() is Reason.CONCLUDED


async def test_a_message_sent_many_times_at_once_is_one(opened: Plane) -> None:
    """Twenty copies of one message over two replicas leave one entry, and each is accepted with its sequence."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    answers = await asyncio.gather(*(opened.send(message, number % 2) for number in range(20)))
    entries = await opened.entries()
    assert [answer.seq for answer in answers if isinstance(answer, Accepted)] == [entries[-1].seq] * 20
    assert messages_of(entries) == [message.header.message_id]


async def test_one_of_two_messages_for_a_turn_wins(opened: Plane) -> None:
    """Two different messages for the same turn race: one is accepted, the other hears that the turn is over."""
    messages = [await opened.message(ADA, Discussion(content=text, next_speaker=BOB)) for text in ("One.", "Two.")]
    answers = await asyncio.gather(*(opened.send(message, router) for router, message in enumerate(messages)))
    lost = [answer for answer in answers if isinstance(answer, Rejected)]
    assert [answer.code for answer in lost] == [RejectionCode.STALE_TURN]
    assert len(messages_of(await opened.entries())) == 1


async def test_a_rejection_says_what_would_be_legal(opened: Plane) -> None:
    """A floor holder whose message is illegal is told its code and the kinds it could send; the log does not grow."""
    answer = await opened.says(ADA, Conclusion(content="Ten."))
    assert isinstance(answer, Rejected)
    assert (answer.code, "CONCLUDE_GROUP_DISCUSSION" in answer.legal) == (RejectionCode.WRONG_PHASE, True)
    assert len(await opened.entries()) == 1


async def test_no_entry_holds_a_draft(opened: Plane) -> None:
    """Whoever follows hears of it; a report that has to be an entry goes into the log without it, whoever sent it so."""
    await opened.says(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=T1, assignee=BOB, task_desc="tell a story"),)))
    for number in (1, 2):
        await opened.says(BOB, InformTaskProgress(task_id=T1, number=number, draft="Once upon"))
    told = [entry.entry.event.message.payload for entry in await opened.entries() if isinstance(entry.entry.event, Said)]
    heard = [said.message.payload for said in opened.progress.reports]
    assert told[1:] == [InformTaskProgress(task_id=T1, number=1)]
    assert heard == [InformTaskProgress(task_id=T1, number=2, draft="Once upon")]


@pytest.mark.parametrize(("comm_id", "sender"), [(ROOM, "bob"), ("gother", "ada")])
async def test_message_in_name_of_other_agent_is_rejected(opened: Plane, comm_id: str, sender: str) -> None:
    """A payload that names another sender or group than its subject is forbidden."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    with pytest.raises(ForbiddenError):
        await opened.routers[0].say(f"ioa.v1.agent.{sender}.{sender}.say.{comm_id}", encode(message))
    assert len(await opened.entries()) == 1


async def test_a_stranger_is_told_of_no_group() -> None:
    """Who is no member is told what it is told where there is no group, whatever it says, also after the group's end."""
    plane, told = Plane(), set[str]()
    await plane.open(ADA, BOB)
    hello = await plane.message(EVE, Discussion(content="Hello.", next_speaker=ADA))
    report = await plane.message(EVE, InformTaskProgress(task_id=TaskId("t1-1"), number=1))
    nowhere = hello.model_copy(update={"header": hello.header.model_copy(update={"comm_id": CommId("nowhere")})})
    for has_ended in (False, True):
        for message in (hello, report, nowhere):
            with pytest.raises(NotFoundError) as refusal:
                await plane.send(message)
            told.add(str(refusal.value).replace(message.header.comm_id, "it"))
        if not has_ended:
            await plane.setup.cancel(LOCAL, CancelGroup(comm_id=ROOM))
    assert len(told) == 1


@pytest.mark.parametrize("data", [b"", b"\xc1"])
async def test_garbage_is_refused(data: bytes) -> None:
    """What is no message is the caller's fault."""
    with pytest.raises(InvalidInputError):
        await Plane().routers[0].say(say(PoolId(ADA), ADA, ROOM), data)


async def test_a_message_too_large_is_refused_unread() -> None:
    """A payload beyond the limit of a message is refused."""
    with pytest.raises(PayloadTooLargeError):
        await Plane().routers[0].say(say(PoolId(ADA), ADA, ROOM), b"\xc1" * 512_001)


@pytest.mark.parametrize("subject", ["ioa.v1.agent.ada.*.say.room", "ioa.v1.agent.ada.ada.say"])
async def test_a_subject_that_names_nobody_is_refused(subject: str) -> None:
    """A wildcard is no name."""
    with pytest.raises(InvalidInputError):
        await Plane().routers[0].say(subject, b"")


async def test_an_early_timer_only_arms_the_next(plane: Plane) -> None:
    """A timer that finds nothing due records nothing."""
    before = await plane.open(ADA, BOB)
    plane.timers.take_due()
    await plane.routers[1].fire_timer(ROOM)
    assert (await plane.state(), before.next_deadline() in plane.timers.pending(ROOM)) == (before, True)


async def test_timers_lost_with_the_server_are_armed_again(plane: Plane) -> None:
    """Looking at an open group arms its deadline; what is not known is passed over."""
    state = await plane.open(ADA, BOB)
    plane.clock.advance(timedelta(days=1))
    plane.timers.take_due()
    assert plane.timers.next_at() is None
    for comm_id in (CommId("nowhere"), ROOM):
        await plane.routers[0].check_open(comm_id)
    assert plane.timers.pending(ROOM) == [state.next_deadline()]


async def test_deadlines_of_goals_that_wait_are_armed_again(plane: Plane) -> None:
    """Looking at a goal that nobody has launched arms its deadline."""
    record = await plane.accept(GoalId("waits"))
    plane.clock.advance(timedelta(days=2))
    plane.timers.take_due()
    await plane.routers[0].check_open(comm_id_of_goal(GoalId("waits")))
    assert plane.timers.pending(comm_id_of_goal(GoalId("waits"))) == [record.deadline]


async def test_a_timer_that_fires_ahead_of_the_clock_is_due(plane: Plane) -> None:
    """Where a router's clock lags behind the one that fires timers, a deadline is acted on, not armed again in the past."""
    state = await plane.open(ADA, BOB)
    fired_at = state.next_deadline()
    await plane.routers[0].fire_timer(ROOM, fired_at)
    assert ((await plane.state()).floor_holder, (await plane.entries())[-1].entry.event.at) == (BOB, fired_at)


async def test_results_lost_with_the_server_are_published_again(opened: Plane) -> None:
    """A group that has ended is noted as open until what it owes is paid; looking at it pays."""
    opened.results.reachable = False
    with pytest.raises(UnavailableError):
        await opened.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
    opened.results.reachable = True
    owing = list(opened.open_groups.comm_ids())
    await opened.routers[1].check_open(ROOM)
    assert (owing, await opened.reason(), list(opened.open_groups.comm_ids())) == ([ROOM], Reason.CANCELLED, [])


async def test_a_success_whose_log_was_removed_stays_one(plane: Plane) -> None:
    """A goal that has a result is not ended again when its log is gone, and what has ended is open no more."""
    await plane.open(ADA, BOB, timeout=timedelta(minutes=5))
    await plane.says(ADA, ConcludeGroupDiscussion())
    await plane.says(ADA, Conclusion(content="Ten."))
    still_open = list(plane.open_groups.comm_ids())
    plane.log.lose()
    for ledger in plane.ledgers:
        ledger.forget()
    plane.clock.advance(timedelta(minutes=6))
    await plane.routers[0].fire_timer(ROOM)
    await plane.routers[1].check_open(ROOM)
    assert (still_open, await plane.reason(), await plane.entries()) == ([], Reason.CONCLUDED, [])


async def test_a_nested_team_that_was_never_launched_is_forgotten_after_its_deadline(plane: Plane) -> None:
    """What a launch that died left in the index goes when no launch can come any more."""
    nested, deadline = CommId("nested"), plane.clock.now() + timedelta(minutes=5)
    await plane.open_groups.put(LOCAL, nested, OpenGroup(goal_id=GOAL, deadline=deadline))
    await plane.routers[0].check_open(nested)
    before = list(plane.open_groups.comm_ids())
    plane.clock.advance(timedelta(minutes=6))
    await plane.routers[0].check_open(nested)
    assert (before, list(plane.open_groups.comm_ids())) == ([nested], [])


async def test_repeated_last_message_is_pushed_again(opened: Plane) -> None:
    """The router that appended it may have died before it told anybody; an older message shows nothing again."""
    first = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    await opened.send(first)
    second = await opened.message(BOB, Discussion(content="No, you.", next_speaker=ADA))
    await opened.send(second)
    shown = len(opened.inboxes.of(ADA))
    await opened.send(first, router=1)
    after_first = len(opened.inboxes.of(ADA))
    await opened.send(second, router=1)
    again = list(opened.inboxes.of(ADA))[after_first:]
    assert (after_first - shown, [entry.seq for entry in again]) == (0, [(await opened.entries())[-1].seq])


async def test_a_timer_that_comes_again_shows_the_head_again(opened: Plane) -> None:
    """A router that died after it acted on a deadline has told nobody; the next one that is given the timer does."""
    opened.clock.advance(timedelta(seconds=60))
    await opened.routers[0].fire_timer(ROOM)
    shown = len(opened.inboxes.of(BOB))
    await opened.routers[1].fire_timer(ROOM, again=True)
    again = list(opened.inboxes.of(BOB))[shown:]
    assert [entry.seq for entry in again] == [(await opened.entries())[-1].seq]


async def test_goal_without_leader_ends_at_its_deadline(plane: Plane) -> None:
    """The deadline of a goal without a group ends it, once, and no group can be launched afterwards."""
    await plane.accept(timeout=timedelta(minutes=5))
    plane.clock.advance(timedelta(minutes=4))
    await plane.routers[0].fire_timer(ROOM)
    assert await plane.reason() is None
    await plane.run_timers()
    [entry] = await plane.entries()
    assert isinstance(entry.entry.event, LaunchAbandoned)
    assert (await plane.reason(), entry.entry.state.phase) == (Reason.DEADLINE, Phase.FAILED)


async def test_a_timer_of_nothing_is_done(plane: Plane) -> None:
    """A timer whose group and goal are unknown leaves nothing behind and arms nothing."""
    await plane.routers[0].fire_timer(CommId("nowhere"))
    assert (plane.log.comm_ids(), plane.timers.next_at()) == ([], None)


async def test_two_timers_at_once_act_once(opened: Plane) -> None:
    """Both replicas may be woken for one deadline; one of them acts."""
    opened.clock.advance(timedelta(seconds=60))
    await asyncio.gather(*(router.fire_timer(ROOM) for router in opened.routers))
    fired = [stored for stored in await opened.entries() if isinstance(stored.entry.event, TimerFired)]
    assert (len(fired), (await opened.state()).floor_holder) == (1, BOB)


async def test_unreachable_log_is_reported(opened: Plane) -> None:
    """While the log is away a message is neither accepted nor rejected, and a timer has to come back."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    opened.log.reachable = False
    with pytest.raises(UnavailableError):
        await opened.send(message, router=1)
    with pytest.raises(UnavailableError):
        await opened.routers[0].fire_timer(ROOM)


async def _said_into_silence(plane: Plane) -> Discussion:
    """ADA has said this, BOB has not answered, and ADA has the floor again."""
    await plane.open(ADA, BOB)
    said = Discussion(content="Bob should count the sheep on the meadow.", next_speaker=BOB)
    await plane.says(ADA, said)
    plane.clock.advance(timedelta(seconds=60))
    await plane.routers[0].fire_timer(ROOM)
    return said


async def test_a_repetition_is_noted_once_and_then_leads_out(plane: Plane) -> None:
    """Two replicas refuse the same repetition and note it once; the next one of the turn makes the owner conclude."""
    again = await _said_into_silence(plane)
    first = await plane.message(ADA, again)
    answers = [await plane.send(first, router) for router in (0, 1)]
    assert [answer.code for answer in answers if isinstance(answer, Rejected)] == [RejectionCode.REPETITION] * 2
    noted = ["group_launched", "said", "timer_fired", "repetition_refused"]
    assert [stored.entry.event.type for stored in await plane.entries()] == noted
    second = await plane.says(ADA, again, router=1)
    state = (await plane.entries())[-1].entry.state
    assert isinstance(second, Rejected) and (state.phase, state.floor_holder) == (Phase.CONCLUDING, ADA)


async def test_a_refusal_whose_record_is_lost_is_made_good_by_the_next_attempt(plane: Plane) -> None:
    """A router that dies before it has noted a repetition leaves that to the next one that is asked."""
    again = await plane.message(ADA, await _said_into_silence(plane))
    plane.log.fail_next_append(Mishap.NOT_STORED)
    with pytest.raises(UnavailableError):
        await plane.send(again)
    answer = await plane.send(again, 1)
    assert isinstance(answer, Rejected)
    noted = ["group_launched", "said", "timer_fired", "repetition_refused"]
    assert [stored.entry.event.type for stored in await plane.entries()] == noted


async def test_a_process_whose_id_was_taken_over_is_heard_no_more(opened: Plane) -> None:
    """What it says is refused by name, before anything is read; its successor speaks, and so do agents that no session claims."""
    for name, previous in (("s1", None), ("s2", SessionId("s1"))):
        await opened.registry.register(Register(card=card("ada"), session=session(name), previous=previous))
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))

    def spoken_by(name: str | None) -> Message:
        header = message.header.model_copy(update={"session": SessionId(name) if name else None})
        return message.model_copy(update={"header": header})

    for speaker in ("s1", None):
        with pytest.raises(SupersededError, match="process 7 on box"):
            await opened.send(spoken_by(speaker))
    answers = [await opened.send(spoken_by("s2")), await opened.says(BOB, Discussion(content="No, you.", next_speaker=ADA))]
    assert [type(answer) for answer in answers] == [Accepted, Accepted]


@pytest.mark.parametrize("told", ["no id!", 5])
async def test_what_is_no_session_is_refused_by_its_field(opened: Plane, told: object) -> None:
    """Also where nobody holds the speaker's id."""
    message = (await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))).model_dump(mode="json")
    message["header"]["session"] = told
    with pytest.raises(InvalidInputError, match=r"header\.session: "):
        await opened.routers[0].say(say(PoolId(ADA), ADA, ROOM), msgpack.packb(message))


async def test_pushed_entry_does_not_contain_the_session(opened: Plane) -> None:
    """Who has an agent's key could take its id by that. It stands in no entry and no report."""

    async def from_a_process(agent_id: AgentId, payload: Payload) -> Message:
        message = await opened.message(agent_id, payload)
        return message.model_copy(update={"header": message.header.model_copy(update={"session": SessionId("process-1")})})

    await opened.send(await from_a_process(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=T1, assignee=BOB, task_desc="tell"),))))
    for number in (1, 2):
        await opened.send(await from_a_process(BOB, InformTaskProgress(task_id=T1, number=number)))
    assert not [one for one in await opened.entries() if b"process-1" in encode(one.entry)]
    assert [said.message.header.session for said in opened.progress.reports] == [None]
