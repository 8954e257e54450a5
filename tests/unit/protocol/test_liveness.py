"""Who is alive, by what was heard and when: nobody is lost by an outage, and nobody who is gone stays for ever."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ioa.protocol.ids import AgentId
from ioa.protocol.liveness import LeaseJudge, Sign, Standing, StandingChange
from ioa.testing.manual_clock import NEW_YEAR

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


def beats(start: int, stop: int) -> list[Event]:
    """The registry's heartbeats of some seconds, one every 2."""
    return [(float(second), BEAT) for second in range(start, stop, 2)]


def standings(judge: LeaseJudge, *agents: AgentId) -> list[Standing]:
    """What is known of some agents."""
    return [judge.standing(agent_id) for agent_id in agents]


def losses(changes: Iterable[StandingChange]) -> set[AgentId]:
    """Who was lost."""
    return {change.agent_id for change in changes if change.after is Standing.LOST}


def test_who_is_silent_for_a_lease_while_others_are_heard_is_lost() -> None:
    """One of three agents renews no more: it is lost a lease later, not before, and back with its next renewal."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (0, BOB), (0, EVE), *((t, who) for t in (3, 6, 9) for who in (ADA, BOB))])
    seen = standings(judge, ADA, BOB, EVE)
    lost = fold(judge, [(10, ADA), (10, BOB)])
    back = fold(judge, [(12, EVE)])
    assert seen == [Standing.ONLINE] * 3
    assert lost == [StandingChange(EVE, Standing.ONLINE, Standing.LOST)]
    assert back == [StandingChange(EVE, Standing.LOST, Standing.ONLINE)]


def test_heartbeats_are_evidence_enough() -> None:
    """A system with one agent learns that it is lost from the registry's heartbeats alone."""
    judge = LeaseJudge(LEASE)
    assert losses(fold(judge, [(0, ADA), *beats(0, 10)])) == set()
    assert losses(fold(judge, beats(10, 14))) == {ADA}


def test_most_agents_are_not_lost_at_once() -> None:
    """Three of four fall silent within one renewal of each other: they get one more lease, and are lost after that."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (1, BOB), (2, EVE), (3, ZOE)])
    steady = [(float(t), ZOE) for t in range(4, 30)]
    assert losses(fold(judge, [event for event in steady if event[0] <= 19])) == set()
    assert losses(fold(judge, [event for event in steady if event[0] > 19])) == {ADA, BOB, EVE}


def test_one_of_those_spared_that_is_heard_is_spared_no_more() -> None:
    """Who returns during the lease that most were given is online as ever, and lost by its own silence only."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (0, BOB), *beats(0, 14), (15, ADA)])
    assert losses(fold(judge, beats(16, 24))) == {BOB}
    assert losses(fold(judge, beats(24, 28))) == {ADA}


def test_who_leaves_is_offline_at_once_and_lost_a_lease_later() -> None:
    """A restart within a lease loses nothing, so that groups are told nothing; whoever stays away is lost."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (0, BOB), (1, BEAT)])
    left = judge.hear(ADA, sign(2, leaves=True)) + judge.hear(BOB, sign(2, leaves=True))
    back = fold(judge, [*beats(4, 8), (8, ADA)])
    assert left == tuple(StandingChange(one, Standing.ONLINE, Standing.AWAY) for one in (ADA, BOB))
    assert back == [StandingChange(ADA, Standing.AWAY, Standing.ONLINE)]
    assert losses(fold(judge, beats(10, 14))) == {BOB}


def test_silence_is_told() -> None:
    """How long nobody has heard an agent is counted to the newest event; nothing is known of who never came."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (3, BEAT)])
    assert (judge.silence(ADA), judge.silence(BOB)) == (timedelta(seconds=3), None)


def test_a_view_that_begins_finds_who_was_heard_of_late() -> None:
    """At its first sight of the bucket, who was heard within a lease is online; the others are lost a lease later, not at once."""
    judge = LeaseJudge(LEASE)
    signs = {ADA: sign(-2), BOB: sign(-20), EVE: sign(-1, leaves=True)}
    judge.restart(signs, NEW_YEAR)
    first = standings(judge, ADA, BOB, EVE, ZOE)
    lost = losses(fold(judge, [*beats(2, 10), (9, ADA), *beats(10, 14)]))
    assert first == [Standing.ONLINE, Standing.AWAY, Standing.AWAY, Standing.LOST]
    assert lost == {BOB, EVE}


def test_a_view_that_was_cut_off_takes_nobody_offline() -> None:
    """After its own interruption a view keeps online who was, notes who came and left meanwhile, and judges anew."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (0, BOB), (0, EVE), (1, BEAT)])
    changes = judge.restart({ADA: sign(0), BOB: sign(50, leaves=True), EVE: sign(59), ZOE: sign(58)}, sign(60).at)
    assert set(changes) == {
        StandingChange(BOB, Standing.ONLINE, Standing.AWAY),
        StandingChange(ZOE, Standing.LOST, Standing.ONLINE),
    }
    assert losses(fold(judge, [*((60.0 + t, who) for t in (3, 6, 9) for who in (EVE, ZOE)), (70, EVE)])) == {ADA, BOB}


def test_who_was_lost_before_a_view_was_cut_off_stays_lost() -> None:
    """A snapshot that tells nothing new of an agent brings nobody back."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (1, BOB), *beats(2, 10), (10, BOB), (11, BEAT)])
    assert judge.restart({ADA: sign(0), BOB: sign(10)}, sign(12).at) == ()
    assert standings(judge, ADA, BOB) == [Standing.LOST, Standing.ONLINE]


def test_a_store_that_comes_back_empty_takes_nobody_offline_at_once() -> None:
    """Who was online has a whole lease to register again."""
    judge = LeaseJudge(LEASE)
    fold(judge, [(0, ADA), (0, BOB)])
    judge.restart({}, None)
    assert fold(judge, [(100, BEAT), *((100.0 + t, BOB) for t in (2, 5, 8))]) == []
    assert losses(fold(judge, [(110, BOB)])) == {ADA}


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
