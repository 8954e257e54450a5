"""A person in a team: what waits for it, and its answers, on a whole system in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ioa import Agent, TurnView
from ioa.cli.people import who_answers
from ioa.client.documents import EntryDocument, told
from ioa.client.seat import PersonReply, PersonSeat, id_under
from ioa.client.waiting import Awaited, AwaitedDocument, asked_in_words, people_in, waiting_for_people
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.group.events import GroupLaunched, Said
from ioa.group.requests import Accepted, Entries, ListMemberships, OpenMemberships, Rejected, Sync
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, Discussion, Message
from ioa.protocol.team import read_toml, team_of
from ioa_testkit import System
from tests.unit.group.scenario import launched_under
from tests.unit.protocol.policies import SHIPPED
from tests.unit.runtime.plane import EVE, ROOM, Plane

WORDS = "caller: Yes?\n\nclinic-clerk: No, {agrees} \t“tomorrow” \u200b "
"""What a person may well write, and no part of which is anybody's to take away."""


def of(awaited: Awaited) -> Any:
    """The JSON document of an open turn."""
    return told(AwaitedDocument.of(awaited))


def lines_of(awaited: Awaited) -> list[str]:
    """The description of an open turn, line by line."""
    return asked_in_words(AwaitedDocument.of(awaited)).splitlines()


def agent(name: str) -> Agent:
    """An agent that says something in each turn."""
    this = Agent(name, description=f"Plays {name}.")

    @this.speak
    def speak(view: TurnView) -> Any:
        assert view.offer is not None
        if view.offer.concluding:
            return view.conclude(view.conversation[-1].content)
        if view.offer.options:
            return view.decide(next((one for one in ("human-luna", "pass") if one in view.offer.options), "end"))
        return view.say(f"{name} in turn {view.turn}", fields={one.name: True for one in view.offer.form if one.required})

    return this


class OfPlane:
    """What a seat asks of a network, answered by a plane in memory."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    async def sync(self, request: Sync) -> Entries:
        """Read a log as a member."""
        return await self._plane.log_pages.sync(request)

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """List a member's groups."""
        return await self._plane.setup.memberships(request)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Say something."""
        return await self._plane.send(message)


async def next_of(seat: PersonSeat) -> Awaited:
    """What waits for a person, once something does."""
    async with asyncio.timeout(5):
        while True:
            async for one in seat.awaited():
                return one
            await asyncio.sleep(0.01)


async def test_a_caller_talks_to_a_clinic(ioa_system: System) -> None:
    """Its words stand in the log as they are; the first answer counts, the same one again is that one, another one is too late."""
    order = GoalOrder(goal="Bring a caller to an appointment.", team=read_toml((SHIPPED / "service.toml").read_text()))
    async with ioa_system.serve(agent("clinic-clerk")) as running:
        seat = running.seat("caller")
        goal = asyncio.create_task(running.run(order))
        first = await next_of(seat)
        assert (first.kind, of(first)["node"], [blank.name for blank in first.offer.form]) == ("say", "consult", ["agrees"])
        assert first.last is not None and isinstance(first.last.payload, Discussion)
        assert first.last.payload.content == "Welcome to the clinic. How can I help?"
        with pytest.raises(InvalidInputError, match="agrees cannot be what you say: it is true or false"):
            await seat.answer(first.item, PersonReply(WORDS, fields={"agrees": "perhaps"}))
        seq = await seat.answer(first.item, PersonReply(WORDS))
        assert await seat.answer(first.item, PersonReply(WORDS)) == seq
        with pytest.raises(ConflictError, match="nothing that you say now counts"):
            await seat.answer(first.item, PersonReply("Something else."))
        second = await next_of(seat)
        await seat.answer(second.item, PersonReply("I do.", fields={"agrees": "yes"}))
        third = await next_of(seat)
        await seat.answer(third.item, PersonReply("Here.", fields={"phone": "12345678"}))
        finished = await goal
        assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "Here.")
        assert [one async for one in seat.awaited()] == []
        with pytest.raises(ConflictError, match="has ended"):
            await seat.answer(third.item, PersonReply("Hello?"))
    said = [stored.entry.event.message for stored in finished.log if isinstance(stored.entry.event, Said)]
    mine = [one.payload for one in said if one.header.sender == "human-caller"]
    assert [one.content for one in mine if isinstance(one, Discussion)] == [WORDS, "I do.", "Here."]
    assert {one.header.decided_by for one in said if one.header.sender == "human-caller"} == {DecidedBy(kind="human")}
    told = [EntryDocument.of(stored) for stored in finished.log]
    assert {(one.sender == "human-caller", one.person) for one in told} == {(True, "caller"), (False, None)}


DESK: Mapping[str, object] = {
    "team": "desk",
    "leader": "boss",
    "roles": {"clerk": "clerk", "boss": {"human": "anna"}},
    "nodes": [{"name": "work", "roles": ["clerk"], "max": 9, "exits": [{"to": "end", "by": "boss"}]}],
}


async def test_a_person_judges_and_states_the_conclusion(ioa_system: System) -> None:
    """As any member does; an agent opens the group, and what was chosen wrongly is told with what there is."""
    async with ioa_system.serve(agent("clerk")) as running:
        seat = running.seat("anna")
        goal = asyncio.create_task(running.run(GoalOrder(goal="Work.", team=team_of(DESK))))
        judging = await next_of(seat)
        assert (judging.kind, judging.offer.options) == ("decide", ("end", "stay"))
        with pytest.raises(InvalidInputError, match="choose one of end, stay"):
            await seat.answer(judging.item, PersonReply("I think so."))
        with pytest.raises(InvalidInputError, match="'over' is none of the options"):
            await seat.answer(judging.item, PersonReply(choose="over"))
        await seat.answer(judging.item, PersonReply("Enough.", choose="end"))
        ending = await next_of(seat)
        await seat.answer(ending.item, PersonReply("Well done: all of it."))
        finished = await goal
    decided = [one.entry.event.message.payload for one in finished.log if isinstance(one.entry.event, Said)]
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "Well done: all of it.")
    assert Decision(choice="end", content="Enough.") in decided
    state = finished.log[-1].entry.state
    assert (people_in(state), state.owner) == (("human-anna",), "clerk")


APART: Mapping[str, object] = {
    "team": "apart",
    "leader": "host",
    "roles": {
        "host": {"agent": "host", "hears_all": True},
        "mole": {"human": "mia", "secret": True},
        "tom": {"human": True},
        "player": {"human": "mia"},
    },
    "nodes": [
        {"name": "talk", "roles": ["tom", "player"], "max": 2, "then": "night"},
        {"name": "night", "roles": ["mole"], "heard_by": "node", "max": 1, "then": "day"},
        {"name": "day", "roles": ["host"]},
    ],
}


async def test_who_is_not_asked_is_not_told_whether_another_is(ioa_system: System) -> None:
    """Where it does not see, the words are those of a turn that is over; who reads no group is told that an item is late first."""
    async with ioa_system.serve(agent("host")) as running:
        tom, mia = running.seat("tom"), running.seat("mia")
        goal = asyncio.create_task(running.run(GoalOrder(goal="Play.", team=team_of(APART))))

        async def introduce(seat: PersonSeat) -> None:
            await seat.answer((await next_of(seat)).item, PersonReply(f"I am {seat.me}."))

        await asyncio.gather(introduce(tom), introduce(mia))
        night = await next_of(mia)
        for turn in (night.state.turn, night.state.turn - 2):
            with pytest.raises(
                ConflictError, match=rf"Turn {turn} of \S+ is not open to you: nothing that you say now counts in it"
            ):
                await tom.answer(f"{night.state.comm_id}.{turn}", PersonReply("Hm."))
        assert await who_answers(running.client, night.item) == "mia"
        with pytest.raises(ConflictError, match="is not open to you"):
            await who_answers(running.client, f"{night.state.comm_id}.99")
        with pytest.raises(InvalidInputError, match="the policy chooses: name nobody"):
            await mia.answer(night.item, PersonReply("Hm.", choose="stay"))
        await mia.answer(night.item, PersonReply("It is me."))
        await goal
        with pytest.raises(ConflictError, match="has ended"):
            await who_answers(running.client, f"{night.state.comm_id}.99")


async def test_what_is_asked_of_nobody_is_said_so(ioa_system: System) -> None:
    """An item that is none, a group that is not there, and who cannot be."""
    async with ioa_system.serve(agent("clerk")) as running:
        for name in ("an na", "", "anna.1", "a" * 60):
            with pytest.raises(InvalidInputError, match="Nobody is called"):
                running.seat(name)
        seat = running.seat("anna")
        for item in ("here", f"room.{'1' * 5_000}"):
            with pytest.raises(InvalidInputError, match="nothing that `ioa waiting` shows"):
                await seat.answer(item, PersonReply("Yes."))
        with pytest.raises(NotFoundError):
            await seat.answer("nowhere.1", PersonReply("Yes."))
    with pytest.raises(InvalidInputError, match="only people take part"):
        team_of({"team": "t", "roles": {"a": {"human": True}}, "nodes": [{"name": "x", "roles": ["a"]}]})


async def test_a_draft_is_said_again_by_its_item(ioa_system: System) -> None:
    """Once or twice, and with no other words; numbers are read strictly, and a conclusion is no other for another reason."""
    roles = {"boss": "boss", "author": {"human": "anna"}}
    node = {"name": "write", "roles": ["author"], "max": 1, "review": {"by": "boss"}, "form": {"score": "number"}}
    team = team_of({"team": "draft", "leader": "author", "roles": roles, "nodes": [node]})
    async with ioa_system.serve(agent("boss")) as running:
        seat = running.seat("anna")
        goal = asyncio.create_task(running.run(GoalOrder(goal="Work.", team=team)))
        first = await next_of(seat)
        for wrong in ("--5", "1_0", "5.0", ""):
            with pytest.raises(InvalidInputError, match="whole number"):
                await seat.answer(first.item, PersonReply("Closed.", fields={"score": wrong}))
        await seat.answer(first.item, PersonReply("Closed.", fields={"score": "+5"}))
        passed = await next_of(seat)
        assert passed.offer.again
        with pytest.raises(InvalidInputError, match="said again as it is"):
            await seat.answer(passed.item, PersonReply("Open."))
        seq = await seat.answer(passed.item, PersonReply())
        assert await seat.answer(passed.item, PersonReply()) == seq
        ending = await next_of(seat)
        with pytest.raises(InvalidInputError, match="A conclusion says something"):
            await seat.answer(ending.item, PersonReply(" "))
        await seat.answer(ending.item, PersonReply("Closed.", choose="failed"))
        assert (await goal).result.reason is Reason.FAILED
        with pytest.raises(ConflictError, match="has ended"):
            await seat.answer(ending.item, PersonReply("Closed."))


async def test_a_person_watches(ioa_system: System) -> None:
    """A slip costs it no try, names are taken with blanks between, and others than it has named are another answer."""
    roles = {"player": {"agents": ["ann", "bob", "cyd"]}, "host": {"human": "eve"}}
    node = {"name": "play", "roles": ["player"], "max": 4}
    team = {"team": "quiz", "leader": "player", "roles": roles, "nodes": [node], "watchers": [{"role": "host", "may": ["remove"]}]}
    async with ioa_system.serve(agent("ann"), agent("bob"), agent("cyd")) as running:
        seat = running.seat("eve")
        goal = asyncio.create_task(running.run(GoalOrder(goal="Work.", team=team_of(team))))
        asked = await next_of(seat)
        assert of(asked)["members"] == {"remove": ["bob", "cyd", "human-eve"]}
        assert lines_of(asked)[0] == "eve is to decide whether to step in at play."
        assert "Name some `members` to remove: bob, cyd, human-eve." in lines_of(asked)
        for wrong in ("bbo", "bob carl", ""):
            with pytest.raises(InvalidInputError):
                await seat.answer(asked.item, PersonReply(choose="remove", fields={"members": wrong}))
        with pytest.raises(InvalidInputError, match="none of the options"):
            await seat.answer(asked.item, PersonReply(choose="removes"))
        assert (await next_of(seat)).state.stage == asked.state.stage
        seq = await seat.answer(asked.item, PersonReply(choose="remove", fields={"members": "bob, cyd"}))
        assert await seat.answer(asked.item, PersonReply(choose="remove", fields={"members": "bob, cyd"})) == seq
        with pytest.raises(ConflictError):
            await seat.answer(asked.item, PersonReply(choose="remove", fields={"members": "bob"}))
        goal.cancel()


async def test_who_sees_the_groups_sees_what_people_need(ioa_system: System) -> None:
    """A draft to judge, what one's words must be like, which fields may lack, and whose answer one was in a group of two people."""
    roles = {"author": {"human": "anna"}, "editor": {"human": "ed"}, "boss": "boss"}
    form = {"score": "number", "note": "text?"}
    guards = ["not_empty", {"longest": 1000}, {"without": ["damn"]}]
    node = {"name": "write", "roles": ["author"], "max": 2, "review": {"by": "editor"}, "form": form, "guards": guards}
    team = team_of({"team": "draft", "leader": "boss", "roles": roles, "nodes": [node]})
    async with ioa_system.serve(agent("boss")) as running:
        author, editor = running.seat("anna"), running.seat("ed")
        goal = asyncio.create_task(running.run(GoalOrder(goal="Work.", team=team)))
        writing = await next_of(author)
        waits = of(writing)
        assert (waits["draft"], waits["required"], waits["about"]) == (True, ["score"], None)
        assert lines_of(writing)[:-1] == [
            "anna is to speak at write.",
            "Your words are a draft: others receive it once it is passed.",
            "Your words: say something.",
            "Your words: have at most 1,000 characters.",
            "Your words: do without damn.",
            "Fill in score: a whole number; note (may be left out): a text that is not empty.",
        ]
        await author.answer(writing.item, PersonReply("Closed on Mondays.", fields={"score": "5"}))
        judging = await next_of(editor)
        [seen] = [one async for one in waiting_for_people(running.client)]
        assert of(seen) == of(judging)
        assert of(seen)["last"] == {"sender": "human-anna", "content": "Closed on Mondays."}
        assert lines_of(seen)[0] == "ed is to decide whether this draft is passed at write."
        await editor.answer(judging.item, PersonReply(choose="reject"))
        assert await who_answers(running.client, judging.item) == "ed"
        assert await who_answers(running.client, writing.item) == "anna"
        goal.cancel()


async def test_nobody_says_a_persons_answer_for_him() -> None:
    """A member that speaks under the id that a person's answer will have has not answered for him: his own is taken."""
    talk = {"name": "talk", "roles": ["player", "anna"], "max": 6, "then": "end"}
    roles = {"player": "any", "anna": {"human": True}}
    policy = team_of({"team": "t", "roles": roles, "nodes": [talk], "leader": "player"}).policy
    plane, anna = Plane(), AgentId("human-anna")
    await plane.join(EVE)
    launch = plane.begin(ROOM, EVE, anna)
    led = launched_under(policy, {"player": [EVE], "anna": [anna]}, EVE, anna).log[0]
    assert isinstance(led, GroupLaunched)
    charter = led.charter.model_copy(update={"comm_id": ROOM, "limits": launch.charter.limits})
    await plane.ledgers[0].record(ROOM, launch.model_copy(update={"charter": charter}))
    network: Any = OfPlane(plane)
    seat = PersonSeat(network, "anna", plane.clock)
    said = await plane.message(EVE, Discussion(content="Do you veto?"))
    taken = said.header.model_copy(update={"message_id": id_under(anna, ROOM, "msg-1")})
    await plane.send(said.model_copy(update={"header": taken}))
    assert not await seat.has_said(ROOM, "msg-1")
    seq = await seat.answer(f"{ROOM}.2", PersonReply(text="VETO"), key="msg-1")
    last = (await plane.entries())[-1]
    assert (seq, "VETO" in str(last.entry.event), await seat.has_said(ROOM, "msg-1")) == (last.seq, True, True)
