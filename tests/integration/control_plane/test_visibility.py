"""A game in which members hear different messages, played by scripted members on a whole system."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from ioa import Agent, TurnView
from ioa.agent.groups.group_session import GroupSession
from ioa.agent.turn_view import Said as Spoken
from ioa.group.events import Said
from ioa.group.requests import SequencedEntry
from ioa.protocol.codec import encode
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.protocol.team import read_toml
from ioa_testkit.finished import FinishedGoal
from ioa_testkit.system import System
from tests.rig.deadline import eventually
from tests.rig.log_checker import Evidence, check_logs, check_records, visible
from tests.unit.protocol.policies import SHIPPED

GOD = "game-master"
PLAYERS = ("emma", "frank", "grace", "henry", "ivy", "jack")


def words(view: TurnView) -> str:
    """What only those may ever read who hear it."""
    assert view.part is not None
    return f"<{view.me} in {view.part.node}>"


class Table:
    """Agents that play by the rules of a game, and what they saw of it."""

    def __init__(self) -> None:
        self.refusals: list[tuple[str, str]] = []

    def agent(self, name: str) -> Agent:
        """An agent that does what its game asks for."""
        this = Agent(name, description=f"Plays {name}.")

        @this.task
        def run(task: str) -> str:
            return task

        @this.speak
        def speak(view: TurnView) -> Spoken:
            if "CONCLUSION" in view.legal:
                return view.conclude("The game is over.")
            assert view.part is not None
            self.refusals += [(f"{view.me} in {view.part.node}", one) for one in view.refusals]
            return self.plays(view)

        return this

    def plays(self, view: TurnView) -> Spoken:
        """Fill in the form of the node. At first, address members that do not hear the node."""
        assert view.part is not None
        match view.part.node, view.refusals:
            case "wolves", ():
                return view.say(words(view), fields={"victim": "ivy"}, only_to=PLAYERS)
            case "wolves", _:
                return view.say(words(view), fields={"victim": "ivy"})
            case "dawn", _:
                return view.say(words(view), fields={"died": "ivy"})
            case "vote", _:
                return view.say(words(view), fields={"vote": "emma"})
            case "judgement", ():
                return view.say(words(view), fields={"over": True}, only_to=["ivy"])
            case "judgement", _:
                return view.say(words(view), fields={"over": True})
            case _:
                return view.say(words(view))


def told(finished: FinishedGoal) -> list[tuple[str, str]]:
    """What was said, with those who were told, in order; side by side by name."""
    said = [
        (one.entry.event.message.payload.content, one.entry.event.message.header.turn, one.entry.audience)
        for one in finished.log
        if isinstance(one.entry.event, Said) and isinstance(one.entry.event.message.payload, Discussion)
    ]
    return [(content, " ".join(sorted(audience))) for content, _, audience in sorted(said, key=lambda one: (one[1], one[0]))]


def everybody(*gone: str) -> str:
    """Return the members without some."""
    return " ".join(sorted({GOD, *PLAYERS} - set(gone)))


def is_whole(finished: FinishedGoal, records: Mapping[str, Sequence[SequencedEntry]]) -> bool:
    """Whether each member has been shown the last entry, or the entry that removed it."""
    last = {name: [one.seq for one in visible(finished.log, AgentId(name))][-1] for name in records}
    return all((record[-1].seq if record else 0) == last[name] for name, record in records.items())


def check(finished: FinishedGoal, records: Mapping[str, Sequence[SequencedEntry]]) -> None:
    """Nobody has anything on record but what it was told, in order and whole; the log refolds to the same states and audiences."""
    comm_id = finished.log[0].entry.state.comm_id
    held = {AgentId(name): {comm_id: record} for name, record in records.items() if record}
    evidence = Evidence(goals=[], results=[], logs={comm_id: finished.log}, records=held)
    wrong = [*check_logs(evidence), *check_records(evidence)]
    assert wrong == []
    data = {name: b"".join(map(encode, record)) for name, record in records.items()}
    for content, audience in told(finished):
        assert {name for name, held_by in data.items() if content.encode() in held_by} == set(audience.split()), content


async def test_each_member_has_on_record_what_the_policy_lets_it_hear(ioa_system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message to a member that does not hear the node is rejected with the names of the members that hear it."""
    ioa_system.within = timedelta(minutes=1)
    table, names = Table(), (GOD, *PLAYERS)
    held: dict[str, list[SequencedEntry]] = {name: [] for name in names}
    apply = GroupSession._apply

    def note_and_apply(session: GroupSession, entry: SequencedEntry) -> None:
        held[session._member.me].append(entry)
        apply(session, entry)

    monkeypatch.setattr(GroupSession, "_apply", note_and_apply)
    team = read_toml((SHIPPED / "werewolf.toml").read_text())
    async with ioa_system.serve(*map(table.agent, names)) as running:
        finished = await running.run(GoalOrder(goal=team.goal, team=team))
        assert finished.result.reason is Reason.CONCLUDED, finished.transcript
        await eventually(lambda: is_whole(finished, held))
        await asyncio.to_thread(check, finished, held)

    heard, wolves = told(finished), f"emma frank {GOD}"
    after_dawn, after_vote = everybody("ivy"), everybody("ivy", "emma")
    by_turns = [one for one in heard if "wolves" not in one[0] and "day" not in one[0]]
    assert [sorted(one for one in heard if node in one[0]) for node in ("wolves", "day")] == [  # in an order that is drawn
        [("<emma in wolves>", wolves), ("<frank in wolves>", wolves)],
        [(f"<{one} in day>", after_dawn) for one in PLAYERS if one != "ivy"],
    ]
    assert by_turns == [
        ("Night falls. Close your eyes.", everybody()),
        ("<grace in seer>", f"{GOD} grace"),
        (f"<{GOD} in seer>", f"{GOD} grace"),
        (f"<{GOD} in witch>", f"{GOD} henry"),
        ("<henry in witch>", f"{GOD} henry"),
        (f"<{GOD} in dawn>", everybody()),
        *((f"<{one} in vote>", after_dawn) for one in sorted(PLAYERS) if one != "ivy"),
        (f"<{GOD} in judgement>", after_vote),
    ]
    assert {who for who, _ in table.refusals} == {"emma in wolves", "frank in wolves", f"{GOD} in judgement"}
    assert "would not hear this; hearers: game-master, frank." in dict(table.refusals)["emma in wolves"]
