"""Seats: open turns of people and their answers, on a whole system in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ioa import Agent, TurnView
from ioa.cli.people import who_answers
from ioa.client.documents import EntryDocument, told
from ioa.client.seat import PersonReply, PersonSeat
from ioa.client.waiting import Awaited, AwaitedDocument, asked_in_words, people_in, waiting_for_people
from ioa.errors import ConflictError, InvalidInputError, IoaError, NotFoundError
from ioa.group.events import GroupLaunched, Said
from ioa.group.requests import Accepted, Entries, ListMemberships, OpenMemberships, Rejected, Sync
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, MessageId
from ioa.protocol.messages import Decision, Discussion, Message
from ioa.protocol.teams.team_file import TeamSpec, read_toml, team_of
from ioa_testkit import System
from ioa_testkit.finished import FinishedGoal
from tests.unit.group.scenario import launched_under
from tests.unit.protocol.policies import SHIPPED
from tests.unit.runtime.plane import EVE, ROOM, Plane

WORDS = "caller: Yes?\n\nclinic-clerk: No, {agrees} \t“tomorrow” \u200b "
"""Words of a person, which the log contains unchanged."""


def agent(name: str) -> Agent:
    """An agent that sends a message in each turn."""
    this = Agent(name, description=f"Plays {name}.")

    @this.speak
    def speak(view: TurnView) -> Any:
        assert view.offer is not None
        if view.offer.concluding:
            return view.conclude(view.conversation[-1].content)
        if view.offer.options:
            return view.decide("pass" if "pass" in view.offer.options else "end")
        return view.say(f"{name} in turn {view.turn}", fields={one.name: True for one in view.offer.form if one.required})

    return this


class OfPlane:
    """The requests of a seat, answered by a plane in memory."""

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


@asynccontextmanager
async def playing(system: System, team: TeamSpec, *agents: str) -> AsyncIterator[tuple[Any, asyncio.Task[FinishedGoal]]]:
    """Run a team with agents; yield the running system and the goal."""
    async with system.serve(*map(agent, agents)) as running:
        goal = asyncio.create_task(running.run(GoalOrder(goal="Work.", team=team)))
        yield running, goal
        goal.cancel()


async def next_of(seat: PersonSeat) -> Awaited:
    """Return the next open turn of a person."""
    async with asyncio.timeout(5):
        while True:
            async for one in seat.awaited():
                return one
            await asyncio.sleep(0.01)


async def refuse(seat: PersonSeat, item: str, match: str, reply: PersonReply, kind: type[IoaError] = InvalidInputError) -> None:
    """Check that an answer is rejected."""
    with pytest.raises(kind, match=match):
        await seat.answer(item, reply)


def document(awaited: Awaited) -> Any:
    """Return the JSON document of an open turn."""
    return told(AwaitedDocument.of(awaited))


def lines_of(awaited: Awaited) -> list[str]:
    """Return the description of an open turn, line by line."""
    return asked_in_words(AwaitedDocument.of(awaited)).splitlines()


async def test_answers_are_sent_unchanged_and_the_first_one_counts(ioa_system: System) -> None:
    """The same answer again has the same sequence; a different answer is too late, and so is any answer after the end."""
    team = read_toml((SHIPPED / "service.toml").read_text())
    async with playing(ioa_system, team, "clinic-clerk") as (running, goal):
        seat = running.seat("caller")
        first = await next_of(seat)
        assert (first.kind, document(first)["node"], [blank.name for blank in first.offer.form]) == ("say", "consult", ["agrees"])
        assert document(first)["last"]["content"] == "Welcome to the clinic. How can I help?"
        wrong = PersonReply(WORDS, fields={"agrees": "perhaps"})
        await refuse(seat, first.item, "agrees cannot be what you say: it is true or false", wrong)
        seq = await seat.answer(first.item, PersonReply(WORDS))
        assert await seat.answer(first.item, PersonReply(WORDS)) == seq
        await refuse(seat, first.item, "nothing that you say now counts", PersonReply("Something else."), ConflictError)
        await seat.answer((await next_of(seat)).item, PersonReply("I do.", fields={"agrees": "yes"}))
        third = await next_of(seat)
        await seat.answer(third.item, PersonReply("Here.", fields={"phone": "12345678"}))
        finished = await goal
        assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "Here.")
        assert [one async for one in seat.awaited()] == []
        await refuse(seat, third.item, "has ended", PersonReply("Hello?"), ConflictError)
    mine = finished.messages(by="human-caller")
    assert [one.payload.content for one in mine if isinstance(one.payload, Discussion)] == [WORDS, "I do.", "Here."]
    assert {one.header.decided_by for one in mine} == {DecidedBy(kind="human")}
    documents = [EntryDocument.of(stored) for stored in finished.log]
    assert {(one.sender == "human-caller", one.person) for one in documents} == {(True, "caller"), (False, None)}


DESK = read_toml("""
team = "desk"
leader = "boss"
[roles]
clerk = "clerk"
boss = { human = "anna" }
[[nodes]]
name = "work"
roles = ["clerk"]
max = 9
exits = [{ to = "end", by = "boss" }]
""")


async def test_a_person_judges_and_states_the_conclusion(ioa_system: System) -> None:
    """A wrong choice is rejected with the options, and an agent owns the group."""
    async with playing(ioa_system, DESK, "clerk") as (running, goal):
        seat = running.seat("anna")
        judging = await next_of(seat)
        assert (judging.kind, judging.offer.options) == ("decide", ("end", "stay"))
        await refuse(seat, judging.item, "choose one of end, stay", PersonReply("I think so."))
        await refuse(seat, judging.item, "'over' is none of the options", PersonReply(choose="over"))
        await seat.answer(judging.item, PersonReply("Enough.", choose="end"))
        ending = await next_of(seat)
        await refuse(seat, ending.item, "The conclusion is empty", PersonReply(" "))
        await seat.answer(ending.item, PersonReply("Well done.", choose="failed"))
        finished = await goal
        await refuse(seat, ending.item, "has ended", PersonReply("Well done."), ConflictError)
    assert (finished.result.reason, finished.content) == (Reason.FAILED, "Well done.")
    assert Decision(choice="end", content="Enough.") in [one.payload for one in finished.messages()]
    state = finished.log[-1].entry.state
    assert (people_in(state), state.owner) == (("human-anna",), "clerk")


APART = read_toml("""
team = "apart"
leader = "host"
[roles]
host = { agent = "host", hears_all = true }
mole = { human = "mia", secret = true }
tom = { human = true }
player = { human = "mia" }
[[nodes]]
name = "talk"
roles = ["tom", "player"]
max = 2
then = "night"
[[nodes]]
name = "night"
roles = ["mole"]
heard_by = "node"
max = 1
then = "day"
[[nodes]]
name = "day"
roles = ["host"]
""")


async def test_turns_of_others_are_not_open_to_a_person(ioa_system: System) -> None:
    """A person does not learn who has a turn that the policy hides."""
    async with playing(ioa_system, APART, "host") as (running, goal):
        tom, mia = running.seat("tom"), running.seat("mia")
        await asyncio.gather(*(_introduce(seat) for seat in (tom, mia)))
        night = await next_of(mia)
        comm_id, turn = night.state.comm_id, night.state.turn
        for hidden, why in ((turn, "is not open to you"), (turn - 2, "is over")):
            await refuse(
                tom, f"{comm_id}.{hidden}", rf"Turn {hidden} of \S+ {why}: nothing that", PersonReply("Hm."), ConflictError
            )
        assert await who_answers(running.client, night.item) == "mia"
        with pytest.raises(ConflictError, match="is not open to you"):
            await who_answers(running.client, f"{comm_id}.99")
        await refuse(mia, night.item, "the policy selects it: name no member", PersonReply("Hm.", choose="stay"))
        await mia.answer(night.item, PersonReply("It is me."))
        await goal
        with pytest.raises(ConflictError, match="has ended"):
            await who_answers(running.client, f"{comm_id}.99")


async def _introduce(seat: PersonSeat) -> None:
    await seat.answer((await next_of(seat)).item, PersonReply(f"I am {seat.me}."))


async def test_invalid_items_and_names_are_rejected(ioa_system: System) -> None:
    """Also a group that does not exist, and a team without an agent."""
    async with ioa_system.serve(agent("clerk")) as running:
        for name in ("an na", "", "anna.1", "a" * 60):
            with pytest.raises(InvalidInputError, match="no valid name of a person"):
                running.seat(name)
        seat = running.seat("anna")
        for item in ("here", f"room.{'1' * 5_000}"):
            await refuse(seat, item, "nothing that `ioa waiting` shows", PersonReply("Yes."))
        await refuse(seat, "room.t1-a.1", "a question to the user of the goal", PersonReply("Yes."))
        await refuse(seat, "nowhere.1", "nowhere", PersonReply("Yes."), NotFoundError)
    with pytest.raises(InvalidInputError, match="only people take part"):
        team_of({"team": "t", "roles": {"a": {"human": True}}, "nodes": [{"name": "x", "roles": ["a"]}]})


DRAFT = read_toml("""
team = "draft"
leader = "boss"
[roles]
author = { human = "anna" }
editor = { human = "ed" }
boss = "boss"
[[nodes]]
name = "write"
roles = ["author"]
max = 2
review = { by = "editor" }
form = { score = "number", note = "text?" }
guards = ["not_empty", { longest = 1000 }, { without = ["damn"] }]
""")


async def test_open_turns_of_all_people_equal_those_of_their_seats(ioa_system: System) -> None:
    """A draft to review with its text, the conditions of a message, and the person of a past turn."""
    async with playing(ioa_system, DRAFT, "boss") as (running, _):
        author, editor = running.seat("anna"), running.seat("ed")
        writing = await next_of(author)
        waits = document(writing)
        assert (waits["draft"], [one["required"] for one in waits["form"]], waits["about"]) == (True, [True, False], None)
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
        assert document(seen) == document(judging)
        assert document(seen)["last"] == {"sender": "human-anna", "content": "Closed on Mondays."}
        assert lines_of(seen)[0] == "ed is to decide whether this draft is passed at write."
        assert await who_answers(running.client, judging.item) == "ed"
        await editor.answer(judging.item, PersonReply(choose="reject"))
        with pytest.raises(ConflictError, match="is over"):
            await who_answers(running.client, writing.item)


async def test_another_member_cannot_answer_under_the_id_of_a_person() -> None:
    """The message of another member with the id of the person's answer is not the answer."""
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
    taken = said.header.model_copy(update={"message_id": "msg-1"})
    await plane.send(said.model_copy(update={"header": taken}))
    seq = await seat.answer(f"{ROOM}.2", PersonReply(text="VETO"), message_id=MessageId("msg-1"))
    last = (await plane.entries())[-1]
    assert isinstance(last.entry.event, Said)
    assert seq == last.seq and "VETO" in str(last.entry.event)
