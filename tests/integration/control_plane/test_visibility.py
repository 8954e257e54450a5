"""Games in which not all hear all, played by scripted members on a whole system: who is told what, and what each has on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

import ioa_testkit.system
from ioa import Agent, TurnView
from ioa.agent.hooks import Said as Spoken
from ioa.group.events import Said
from ioa.group.requests import SequencedEntry
from ioa.protocol.codec import encode
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.protocol.team import TeamSpec, read_toml, team_of
from ioa_testkit.finished import FinishedGoal
from ioa_testkit.system import System
from tests.rig.agent_stores import OpenedStores
from tests.rig.deadline import eventually
from tests.rig.log_checker import Evidence, check_courses, check_logs, check_records
from tests.unit.protocol.policies import SHIPPED

Plays = Callable[[TurnView], Spoken]

PLANS: Mapping[str, Any] = {
    "team": "two-teams",
    "leader": "chair",
    "roles": {"red": {"agents": ["alice", "bob"]}, "blue": {"agents": ["cathy", "david"]}, "chair": "game-master"},
    "nodes": [
        {"name": "red-plans", "roles": ["red"], "heard_by": "red", "then": "blue-plans"},
        {"name": "blue-plans", "roles": ["blue"], "heard_by": "node", "then": "debate"},
        {"name": "debate", "roles": ["red", "blue"], "max": 2},
    ],
}
PANEL: Mapping[str, Any] = {
    "team": "panel",
    "leader": "host",
    "roles": {"panelist": {"agents": ["alice", "bob", "cathy"]}, "host": "game-master", "guest": "david"},
    "nodes": [
        {"name": "apart", "roles": ["host", "panelist"], "turns": {"mode": "hub", "by": "host", "peers": "never"}, "max": 5,
         "then": "after"},
        {"name": "after", "roles": ["panelist"], "turns": "together", "form": {"score": "1..10"}, "then": "open"},
        {"name": "open", "roles": ["panelist", "guest"], "turns": {"mode": "together", "peers": "at_once"}},
    ],
}  # fmt: skip

GOD = "game-master"
PLAYERS = ("emma", "frank", "grace", "henry", "ivy", "jack")
FRIENDS = ("alice", "bob", "cathy", "david")
REFEREE = "referee"


def words(view: TurnView) -> str:
    """What only those may ever read who hear it."""
    assert view.part is not None
    return f"<{view.me} in {view.part.node}>"


class Table:
    """Agents that play by the rules of a game, and what they saw of it."""

    def __init__(self) -> None:
        self.refusals: list[tuple[str, str]] = []
        self.read: dict[tuple[str, str], list[str]] = {}
        self.prompts: dict[str, set[str]] = {}

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
            self.read[name, view.part.node] = [one.content for one in view.conversation]
            self.prompts.setdefault(name, set()).update(view.part.prompts)
            return self.plays(view)

        return this

    def plays(self, view: TurnView) -> Spoken:
        """Say something where it is heard, fill in what is asked for, and try first to reach who would not hear it."""
        assert view.part is not None and view.offer is not None
        match view.part.node, view.refusals:
            case "wolves", ():
                return view.say(words(view), fields={"victim": "ivy"}, only_to=PLAYERS)
            case "wolves", _:
                return view.say(words(view), fields={"victim": "ivy"})
            case "dawn", _:
                return view.say(words(view), fields={"died": "ivy"})
            case "vote", _:
                return view.say(words(view), fields={"vote": "cathy" if "cathy" in view.offer.form[0].values else "emma"})
            case "judgement", ():
                return view.say(words(view), fields={"over": True}, only_to=["ivy"])
            case "judgement", _:
                return view.say(words(view), fields={"over": True})
            case "game", _:
                return self.hosted(view)
            case "apart", _ if view.offer.most_named > 1:
                return view.say(words(view), to=["alice", "bob", "cathy"])
            case "after", _:
                return view.say(words(view), fields={"score": 7})
            case _:
                return view.say(words(view))

    def hosted(self, view: TurnView) -> Spoken:
        """Lead a game in one's own words, let the referee take out whom they name, and play it."""
        assert view.offer is not None
        said = f"<{view.me} in turn {view.turn}>"
        if view.offer.about == "watch":
            is_out = view.conversation[-1].content.endswith("cathy is out")
            return view.decide("remove", members=["cathy"]) if is_out else view.decide("nothing")
        match len([one for one in view.conversation if one.sender == GOD]):
            case _ if view.me != GOD:
                return view.say(said)
            case 0:
                return view.say(said, to=FRIENDS)
            case 1:
                return view.say(f"{said} cathy is out", to=[one for one in FRIENDS if one != "cathy"])
            case _:
                return view.say(said, go="end")


class Shelf(OpenedStores):
    """The stores of the agents that are served, in their order."""

    async def records(self, names: Sequence[str], finished: FinishedGoal) -> Mapping[str, Sequence[SequencedEntry]]:
        """What each has on record of a group."""
        comm_id = finished.log[0].entry.state.comm_id
        return {name: await store.entries(comm_id) for name, store in zip(names, self.stores, strict=True)}


def shipped(file: str) -> TeamSpec:
    """A team that ships."""
    return read_toml((SHIPPED / f"{file}.toml").read_text())


def told(finished: FinishedGoal) -> list[tuple[str, str]]:
    """What was said, with those who were told, in order; side by side by name."""
    said = [
        (one.entry.event.message.payload.content, one.entry.event.message.header.turn, one.entry.audience)
        for one in finished.log
        if isinstance(one.entry.event, Said) and isinstance(one.entry.event.message.payload, Discussion)
    ]
    return [(content, " ".join(sorted(audience))) for content, _, audience in sorted(said, key=lambda one: (one[1], one[0]))]


def everybody(*gone: str, among: Sequence[str] = (GOD, *PLAYERS)) -> str:
    """All but some."""
    return " ".join(sorted(set(among) - set(gone)))


def is_whole(finished: FinishedGoal, records: Mapping[str, Sequence[SequencedEntry]]) -> bool:
    """Whether each member has been shown the last entry that it may see."""
    last = {name: max([one.seq for one in finished.log if one.entry.is_shown_to(AgentId(name))], default=0) for name in records}
    return all((record[-1].seq if record else 0) == last[name] for name, record in records.items())


def check(finished: FinishedGoal, records: Mapping[str, Sequence[SequencedEntry]]) -> None:
    """Nobody has anything on record but what it was told, in order and whole; the log refolds to the same states and audiences."""
    comm_id = finished.log[0].entry.state.comm_id
    held = {AgentId(name): {comm_id: record} for name, record in records.items() if record}
    evidence = Evidence(goals=[], results=[], logs={comm_id: finished.log}, records=held)
    wrong = [*check_logs(evidence), *check_courses(evidence), *check_records(evidence)]
    assert wrong == []
    data = {name: b"".join(map(encode, record)) for name, record in records.items()}
    for content, audience in told(finished):
        assert {name for name, held_by in data.items() if content.encode() in held_by} == set(audience.split()), content


async def test_each_hears_what_the_policy_lets_it_hear(ioa_system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """In games that ship, two teams that plan apart, and a panel; on record it has that, and nothing else."""
    ioa_system.within = timedelta(minutes=1)
    table, shelf = Table(), Shelf()
    monkeypatch.setattr(ioa_testkit.system, "open_sqlite_store", shelf.open)
    names = (GOD, REFEREE, *PLAYERS, *FRIENDS)
    odd_word_known: list[set[str]] = []
    async with ioa_system.serve(*map(table.agent, names)) as running:

        async def play(team: TeamSpec) -> list[tuple[str, str]]:
            finished = await running.run(GoalOrder(goal=team.goal or "Play.", team=team))
            assert finished.result.reason is Reason.CONCLUDED, finished.transcript
            held = await eventually(lambda: shelf.records(names, finished), lambda held: is_whole(finished, held))
            await asyncio.to_thread(check, finished, held)
            if "undercover" in team.team:
                odd_word_known.append({name for name in names if any(b"pear" in encode(one) for one in held[name])})
            return told(finished)

        wolves = f"emma frank {GOD}"
        after_dawn, after_vote = everybody("ivy"), everybody("ivy", "emma")
        heard = await play(shipped("werewolf"))
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
        assert "would not hear this; it is heard by game-master, frank." in dict(table.refusals)["emma in wolves"]

        friends = everybody(among=(GOD, *FRIENDS))
        assert await play(shipped("undercover")) == [
            *((f"<{one} in describe>", friends) for one in FRIENDS),
            *((f"<{one} in vote>", friends) for one in FRIENDS),
            (f"<{GOD} in out>", everybody("cathy", among=(GOD, *FRIENDS))),
        ]
        assert [table.prompts[one] for one in ("alice", "cathy")] == [{"Your word is: apple."}, {"Your word is: pear."}]
        assert [table.read[one, "describe"] for one in FRIENDS] == [[]] * 4
        assert [len(table.read[one, "vote"]) for one in FRIENDS] == [4] * 4

        game = (GOD, REFEREE, *FRIENDS)
        all_of_them, without_cathy = everybody(among=game), everybody("cathy", among=game)
        assert await play(shipped("undercover-hosted")) == [
            (f"<{GOD} in turn 1>", all_of_them),
            *((f"<{one} in turn 3>", all_of_them) for one in FRIENDS),
            (f"<{GOD} in turn 4> cathy is out", all_of_them),
            *((f"<{one} in turn 6>", without_cathy) for one in FRIENDS if one != "cathy"),
            (f"<{GOD} in turn 7>", without_cathy),
        ]
        assert odd_word_known == [{GOD, "cathy"}, {GOD, REFEREE, "cathy"}]

        assert await play(team_of(PLANS)) == [
            ("<alice in red-plans>", "alice bob"),
            ("<bob in red-plans>", "alice bob"),
            ("<cathy in blue-plans>", "cathy david"),
            ("<david in blue-plans>", "cathy david"),
            ("<alice in debate>", friends),
            ("<bob in debate>", friends),
        ]
        three = ("alice", "bob", "cathy")
        assert await play(team_of(PANEL)) == [
            (f"<{GOD} in apart>", friends),
            *((f"<{one} in apart>", f"{one} david {GOD}") for one in three),
            (f"<{GOD} in apart>", friends),
            *((f"<{one} in after>", friends) for one in three),
            *((f"<{one} in open>", friends) for one in FRIENDS),
        ]
        assert [len(table.read[one, "after"]) for one in three] == [3] * 3
