"""Who holds a secret role is nothing that a member can compute from what it is shown, whatever the members are called and given."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from ioa.group.deadlines import next_deadline
from ioa.group.events import Entry, Event, GroupLaunched, MemberLost, MemberReturned, TimerFired, encode_entry
from ioa.group.legality import Offer, offer
from ioa.group.machine import step
from ioa.group.policy.casting import members_in_order
from ioa.group.policy.hearing import as_known
from ioa.group.policy.visibility import seen_by, view_for
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Conclusion, Decision, Discussion, Pass, PassCause, Payload
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.policy_parts import FieldValue, Node
from ioa.protocol.setup.charter import Charter
from ioa.protocol.teams.checker import check
from tests.unit.group.scenario import START, charter, limits, said
from tests.unit.protocol.policies import Choose, any_policy

ONE, OTHER = AgentId("bob"), AgentId("cid")
"""Who may hold the secret role: one in one world, the other in the other one."""
MEMBERS = (AgentId("ada"), ONE, OTHER, AgentId("eve"), AgentId("sue"))
GAMES = (range(25), pytest.param(range(25, 150), marks=pytest.mark.nightly))
STEPS = 60


class World:
    """A group, with what each of its members was shown."""

    def __init__(self, launch: GroupLaunched) -> None:
        assert launch.charter.policy is not None
        self.policy = launch.charter.policy
        self.entries: list[Entry] = []
        self.happens(launch)

    @property
    def state(self) -> GroupState:
        """Where the group stands."""
        return self.entries[-1].state

    def happens(self, event: Event) -> None:
        """Take an event; a refusal changes nothing."""
        before = self.entries[-1].state if self.entries else None
        after = step(before, event, self.policy)
        self.entries.append(Entry(event=event, audience=after.audience, state=after.state))
        if len(self.entries) % 5 == 0:  # one after the other, as a router shows it to them
            for member in after.state.members:
                self.last_shown_to(member.agent_id)

    def last_shown_to(self, agent_id: AgentId) -> bytes | None:
        """What a member is shown of the last entry. Of what is kept for the next one it is never another's, or what was before."""
        last = self.entries[-1]
        before = self.entries[-2:][0].state
        if agent_id not in (*before.hearing, *last.state.hearing):
            return None
        view, me = view_for(self.policy, last, agent_id), last.state.members[last.state.number_of(agent_id)]
        if self.policy.is_scoped:
            assert view.state.members == as_known(self.policy, last.state.members, me)
        shown = encode_entry(view).data
        assert shown == encode(view)
        return shown


def launch_of(policy: Policy, cast: Mapping[str, Sequence[AgentId]]) -> GroupLaunched:
    """A launch as group setup makes it."""
    castings = tuple([Casting(role=role.name, members=tuple(cast[role.name])) for role in policy.roles])
    everybody = (MEMBERS[0], *(agent for one in castings for agent in one.members), *MEMBERS)
    members, castings = members_in_order(policy, everybody, castings)
    free = charter(*members, limits=limits(max_turns=30))
    return GroupLaunched(at=START, charter=Charter.model_validate({**dict(free), "policy": policy, "cast": castings}))


def any_game(choose: Choose) -> Policy:
    """A policy made at random in which roles are secret, and that shows by itself of none who holds it."""
    while True:
        made = any_policy(choose)
        opening = choose([role.name for role in made.roles])
        secrets = [role.name for role in made.roles if role.name != opening and choose((True, True, False))]
        heard: Sequence[Any] = (None, None, "node", *((name,) for name in (*secrets, opening)))
        roles = [{**role.model_dump(), "secret": role.name in secrets, "human": False} for role in made.roles]
        nodes = [{**node.model_dump(), "heard_by": choose(heard)} for node in made.nodes]
        told = {**made.model_dump(), "roles": roles, "nodes": nodes, "leader": opening, "ends": "leader"}
        policy = Policy.model_validate(told)
        if secrets and not _shows_holders(policy, {*secrets}) and not any(one.kind == "error" for one in check(policy)):
            return policy


def _shows_holders(policy: Policy, secrets: set[str]) -> bool:
    """Whether the rules show a holder to members that hear no secret role: by who speaks, decides or is waited for."""
    roles = {role.name: role for role in policy.roles}
    deciding = {watcher.role for watcher in policy.watchers} | {watcher.by for watcher in policy.watchers}
    deciding |= {name for node in policy.nodes for name in (*_deciding(node), *node.turns.follow, *node.turns.follow.values())}
    for number, node in enumerate(policy.nodes):
        mixed = secrets.intersection(node.roles)
        heard = [policy.hearers(number, (policy.role_numbers[name],)) for name in mixed]
        is_heard = any(one is None or not {policy.roles[role].name for role in one} <= {*node.roles} for one in heard)
        asked = [name for name in _deciding(node) if not roles[name].hears_all]
        if mixed and (is_heard or asked or not secrets.issuperset(node.roles) or node.tasks):
            return True
    return bool(secrets & deciding) or any(roles[name].at_most or roles[name].timeout for name in secrets)


def _deciding(node: Node) -> Iterator[str]:
    """Name the roles that are asked to decide in a node."""
    named = (node.turns.by, node.review.by if node.review else None, *(way.judge for way in node.exits))
    yield from (name for name in named if name is not None)


def two_worlds(policy: Policy, choose: Choose) -> tuple[World, World, Sequence[AgentId]]:
    """Two groups that differ only in who holds a secret role, and who is not to know."""
    secrets = [role.name for role in policy.roles if role.secret]
    known = [role.name for role in policy.roles if not role.secret]
    mine, its = choose(secrets), choose([*secrets, None])
    cast: dict[str, list[AgentId]] = {role.name: [one for one in MEMBERS[3:] if choose((True, False))] for role in policy.roles}
    shared = {choose(known)} if its in (None, mine) else {name for name in known if choose((True, False))}
    for name in shared:
        cast[name] += [ONE, OTHER]
    for role in policy.roles:
        cast[role.name] = cast[role.name] or [MEMBERS[0]]
    worlds = []
    for holder, rest in ((ONE, OTHER), (OTHER, ONE)):
        here = {name: [*members] for name, members in cast.items()}
        here[mine] = [holder, *here[mine]]
        if its is not None and its != mine:
            here[its] = [rest, *here[its]]
        worlds.append(World(launch_of(policy, here)))
    knowing = {mine, its, *_told_of(policy, (mine, its))}
    informed = {ONE, OTHER, *(agent for name in knowing if name is not None for agent in cast[name])}
    return worlds[0], worlds[1], [one for one in MEMBERS if one not in informed]


def _told_of(policy: Policy, names: Sequence[str | None]) -> Iterator[str]:
    """Name the roles that the policy lets hear, apart from others, who plays some roles."""
    for number, node in enumerate(policy.nodes):
        for name in node.roles:
            hearers = policy.hearers(number, (policy.role_numbers[name],)) if name in names else None
            yield from () if hearers is None else (policy.roles[one].name for one in hearers)


def counterpart(one: World, other: World, agent_id: AgentId, blind: Sequence[AgentId]) -> AgentId:
    """Who does in the other world what a member does in this one: itself, or where no stranger sees it who plays the same."""
    swapped = {ONE: OTHER, OTHER: ONE}.get(agent_id, agent_id)
    unseen = not any(agent_id in seen_by(one.policy, one.state, stranger).floor for stranger in blind)
    names = (swapped, agent_id) if unseen else (agent_id, swapped)
    return next((name for name in names if name in other.state.floor), agent_id)


def words_for(offered: Offer | None, choose: Choose, number: int) -> Payload:
    """Something that a member may say, which names neither of the two."""
    if offered is None:
        return Conclusion(content="Done.")
    able = [one for one in offered.next_speakers if one not in (ONE, OTHER)]
    if offered.options:
        options = [one for one in offered.options if one not in (ONE, OTHER, "add")] or [offered.default]
        choice = choose(options)
        named = [one for one in offered.members if one not in (ONE, OTHER)] if choice in ("remove", "hint") else []
        return Decision(choice=choice, content="So be it.", members=tuple(named[-1:]))
    if offered.say is not None:
        return Discussion(content=offered.say)
    fields: dict[str, FieldValue] = {}
    for blank in offered.form:
        values = [one for one in blank.options if one not in (ONE, OTHER)] if blank.kind == "member" else blank.options
        if blank.kind in ("member", "option") and not values:
            continue
        by_kind: Mapping[str, FieldValue] = {"text": "mine", "number": blank.lowest or 1, "yes_no": choose((True, False))}
        fields[blank.name] = by_kind[blank.kind] if blank.kind in by_kind else choose(values)
    told: dict[str, str] = {}
    if choose((True, False)) and able:
        told = {"next_speaker": choose(able)}
    if offered.go and not told and choose((True, False)):
        told = {"go": choose(offered.go)}
    return Discussion.model_validate({"content": f"Point {number}.", "fields": fields, **told})


def anything(one: World, other: World, blind: Sequence[AgentId], choose: Choose) -> tuple[Event, Event]:
    """The same event in both worlds, but for who of the two it is of."""
    state, now = one.state, one.entries[-1].event.at + timedelta(seconds=1)
    kind = choose(("says", "says", "says", "says", "passes", "silent", "lost", "returned"))
    strangers = [
        member for member in state.members if member.agent_id not in (ONE, OTHER) and not member.human and not member.removed
    ]
    lost = [member.agent_id for member in strangers if member.lost]
    same = [
        member.agent_id for member in strangers if (member.agent_id in one.state.floor) == (member.agent_id in other.state.floor)
    ]
    living = [agent_id for agent_id in same if agent_id not in lost]  # the order of turns can depend on a hidden role
    if kind == "lost" and living:
        event: Event = MemberLost(at=now, agent_id=choose(living))
        return event, event
    if kind == "returned" and lost:
        event = MemberReturned(at=now, agent_id=choose(lost))
        return event, event
    due = next_deadline(state)
    assert due is not None
    if kind == "silent" or not state.floor:
        return TimerFired(at=due), TimerFired(at=due)
    holder = choose(state.floor)
    its_twin = counterpart(one, other, holder, blind)
    payload: Payload = (
        Pass(cause=PassCause.NOTHING_TO_ADD)
        if kind == "passes"
        else words_for(offer(one.policy, state, holder), choose, len(one.entries))
    )
    return said(holder, payload, state.turn, now), said(its_twin, payload, other.state.turn, now)


def play(one: World, other: World, blind: Sequence[AgentId], choose: Choose) -> int:
    """Play two groups side by side, and return how much was shown to who is not to know; to them it is the same."""
    shown = 0
    for _ in range(STEPS):
        for agent_id in blind:
            seen = one.last_shown_to(agent_id)
            assert seen == other.last_shown_to(agent_id), (agent_id, one.entries[-1], other.entries[-1])
            shown += seen is not None
        if one.state.phase.is_terminal:
            assert other.state.phase.is_terminal
            return shown
        mine, its = anything(one, other, blind, choose)
        taken = []
        for world, event in ((one, mine), (other, its)):
            try:
                step(world.state, event, world.policy)
                taken.append(True)
            except IllegalEventError:
                taken.append(False)
        if all(taken):
            one.happens(mine)
            other.happens(its)
    return shown


@pytest.mark.parametrize("games", GAMES, ids=str)
def test_holder_of_a_secret_role_does_not_change_the_views_of_others(games: range) -> None:
    """Two groups that differ in nothing else look the same to the byte, unless the policy shows it, which the checker says."""
    shown = 0
    for seed in games:
        choose = random.Random(seed).choice
        one, other, blind = two_worlds(any_game(choose), choose)
        shown += play(one, other, blind, choose)
    assert shown > len(games)
