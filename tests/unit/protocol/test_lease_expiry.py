"""Who is alive, by what was heard and when: nobody is lost by an outage, and nobody who is gone stays for ever."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.protocol.agents.lease_expiry import LeaseJudge, Sign, Standing, StandingChange
from ioa.protocol.ids import AgentId
from ioa.testing.manual_clock import NEW_YEAR
from tests.unit.group.rules import read

LEASE, RENEW_EVERY = timedelta(seconds=10), timedelta(seconds=3)
ADA, BOB, EVE, ZOE = (AgentId(name) for name in ("ada", "bob", "eve", "zoe"))
BEAT = AgentId("-")
"""Stands for the registry where a test names who was heard."""

Event = tuple[float, AgentId]
"""Who was heard, and when, in seconds."""


def sign(seconds: float, *, leaves: bool = False) -> Sign:
    """A sign of life, or of leaving."""
    return Sign(NEW_YEAR + timedelta(seconds=seconds), leaves)


def fold(judge: LeaseJudge, events: Iterable[Event]) -> list[StandingChange]:
    """Tell a judge what was heard, in order."""
    changes: list[StandingChange] = []
    for seconds, who in events:
        heard = sign(seconds)
        changes += judge.beat(heard.at) if who == BEAT else judge.hear(who, heard)
    return changes


def standings(judge: LeaseJudge, *agents: AgentId) -> list[Standing]:
    """What is known of some agents."""
    return [judge.standing(agent_id) for agent_id in agents]


def losses(changes: Iterable[StandingChange]) -> set[AgentId]:
    """Who was lost."""
    return {change.agent_id for change in changes if change.after is Standing.LOST}


FILE = Path(__file__).parents[2] / "data" / "liveness.txt"
RULES = read(FILE)


def play(rule: str) -> str:
    """Return the text of a rule with the changes that follow: in `10 ada bob!`, both are heard at 10 s, and Bob leaves."""
    judge, lines = LeaseJudge(LEASE), [rule.partition("\n> ")[0]]
    for command in [line[2:] for line in rule.splitlines() if line.startswith("> ")]:
        at, *agents = command.split()
        changes: list[StandingChange] = []
        if at == "restart":
            signs = {AgentId(name): _sign(when) for name, when in [one.split(":") for one in agents[1:]]}
            changes += judge.restart(signs, _sign(agents[0]).at if agents else None)
        for name in agents if at not in ("restart", "silence") else ():
            heard = _sign(at + "!" * name.endswith("!"))
            changes += judge.beat(heard.at) if name == BEAT else judge.hear(AgentId(name.rstrip("!")), heard)
        told = [f"{one.agent_id} {one.before} to {one.after}" for one in changes]
        if at == "restart":
            told = [" ".join([*told, *(f"{name}={judge.standing(name)}" for name in (ADA, BOB, EVE, ZOE))])]
        if at == "silence":
            told = [f"{name} {judge.silence(name)}" for name in (ADA, BOB)]
        lines += [f"> {command}", *told]
    return "\n".join([*lines, "", ""])


def _sign(text: str) -> Sign:
    return sign(float(text.rstrip("!")), leaves=text.endswith("!"))


@pytest.mark.parametrize("rule", RULES, ids=[rule.splitlines()[0][2:] for rule in RULES])
def test_events_change_standings_as_recorded(rule: str) -> None:
    """Each rule of `tests/data/liveness.txt`."""
    assert play(rule).splitlines() == rule.splitlines()


class World:
    """A system with outages and clock steps: agents that renew whenever it is up, one that stops, and the bucket it leaves."""

    def __init__(self, seed: int, agents: int) -> None:
        self._chance = random.Random(seed)
        self.agents = [AgentId(f"a{number}") for number in range(agents)]
        self._due = {agent_id: self._chance.uniform(0, 3) for agent_id in self.agents}
        self._beat, self._now, self._shift = 0.0, 0.0, 0.0

    def up(self, seconds: float) -> list[Event]:
        """What is stored while the system is up; everybody renews within 3 s, and within 2 s after an outage."""
        until, events = self._now + seconds, list[Event]()
        while (at := min(self._beat, *self._due.values())) < until:
            self._now = max(self._now, at)
            if at == self._beat:
                events.append((self._now + self._shift, BEAT))
                self._beat = self._now + 3
            else:
                who = min(self._due, key=self._due.__getitem__)
                events.append((self._now + self._shift, who))
                self._due[who] = self._now + 3
        self._now = until
        return events

    def down(self, seconds: float) -> None:
        """Nothing is stored; whoever is due asks again and is heard within 2 s of the end."""
        self._now += seconds
        for who, due in self._due.items():
            self._due[who] = max(due, self._now + self._chance.uniform(0, 2)) if due < self._now else due
        self._beat = max(self._beat, self._now)

    def set_clock(self, seconds: float) -> None:
        """Set the server's clock."""
        self._shift += seconds

    def fall_silent(self, who: AgentId) -> None:
        """An agent dies."""
        del self._due[who]


def _history(seed: int, agents: int, faults: Sequence[tuple[str, float]]) -> tuple[World, list[Event]]:
    world = World(seed, agents)
    events = world.up(12)
    for kind, amount in faults:
        if kind == "down":
            world.down(abs(amount))
        else:
            world.set_clock(amount)
        events += world.up(6)
    return world, events


FAULTS = st.lists(st.tuples(st.sampled_from(["down", "clock"]), st.floats(-4_000, 4_000)), max_size=6)


@given(st.integers(0, 10_000), st.integers(1, 12), FAULTS)
def test_nobody_who_renews_whenever_it_can_is_ever_lost(seed: int, agents: int, faults: list[tuple[str, float]]) -> None:
    """Whatever outages there are and however the server's clock is set, agents that live are online all the time."""
    world, events = _history(seed, agents, faults)
    judge = LeaseJudge(LEASE)
    assert losses(fold(judge, events)) == set()
    assert set(standings(judge, *world.agents)) == {Standing.ONLINE}


@given(st.integers(0, 10_000), st.integers(1, 12), FAULTS, st.integers(0, 12))
def test_who_stays_silent_is_lost_after_two_leases_at_the_latest(
    seed: int, agents: int, faults: list[tuple[str, float]], dead: int
) -> None:
    """However many die together: once the registry was up for two leases and a pause, all of them are lost, and nobody else."""
    world, events = _history(seed, agents, faults)
    gone = set(world.agents[: min(dead, agents - 1)])
    for who in gone:
        world.fall_silent(who)
    judge = LeaseJudge(LEASE)
    changes = fold(judge, [*events, *world.up(2 * 10 + 5 + 3)])
    assert losses(changes) == gone


@given(st.integers(0, 10_000), st.integers(2, 8), FAULTS, st.data())
def test_followers_that_were_frozen_or_cut_off_lose_nobody(
    seed: int, agents: int, faults: list[tuple[str, float]], data: st.DataObject
) -> None:
    """A process that reads late, or begins again from what the bucket holds, comes to no other judgement of those who live."""
    _, events = _history(seed, agents, faults)
    judge, bucket, changes = LeaseJudge(LEASE), dict[AgentId, Sign](), list[StandingChange]()
    cuts = data.draw(st.sets(st.integers(0, len(events) - 1), max_size=4))
    back = {cut + data.draw(st.integers(0, 40)) for cut in cuts}
    following = True
    for number, (seconds, who) in enumerate(events):
        if number in cuts:
            following = False
        bucket[who] = sign(seconds)
        if following:
            changes += fold(judge, [(seconds, who)])
        elif number in back:
            signs = {one: heard for one, heard in bucket.items() if one != BEAT}
            changes += judge.restart(signs, max(heard.at for heard in bucket.values()))
            following = True
    assert losses(changes) == set()
