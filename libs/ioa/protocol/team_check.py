"""What in a team cannot work as it is written: what its policy alone says, and what follows from how many take part.

Bounds are counted as if nobody were lost. Nodes in which members run out of turns (`at_most`), and teams that remove members, have
none that could be told beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush

from ioa.protocol.policy import END, Condition, Exit, Node, Policy
from ioa.protocol.policy_check import NEVER_A_TURN, PolicyFinding, called, check, listed, role_at, roles_with_turns
from ioa.protocol.team import TeamSpec


def check_team(team: TeamSpec) -> tuple[PolicyFinding, ...]:
    """Say all that is wrong with a team, and what is worth a thought, errors first; empty if nothing is."""
    found = check(team.policy)
    if any(one.kind == "error" for one in found):
        return found
    playing = {role_at(name) for name in _with_turns_elsewhere(team)}
    found = tuple([one for one in found if one.what != NEVER_A_TURN or one.where not in playing])
    return (*found, *(PolicyFinding("warning", where, what) for where, what in _Counted(team).warnings()))


def _with_turns_elsewhere(team: TeamSpec) -> Iterator[str]:
    """Yield the roles of which a holder that is known by name has turns, if only as what else it plays."""
    turned = roles_with_turns(team.policy)
    active = {agent for filling in team.fillings if filling.role in turned for agent in filling.agents}
    for filling in team.fillings:
        if not active.isdisjoint(filling.agents):
            yield filling.role


class _Counted:
    """A team whose members are counted."""

    def __init__(self, team: TeamSpec) -> None:
        self._team = team
        self._policy: Policy = team.policy
        self._names: Mapping[str, Sequence[str]] = {one.role: one.names for one in team.fillings}

    def warnings(self) -> Iterator[tuple[str, str]]:
        """Say where something is, and what."""
        for node in self._policy.nodes:
            for what in (*self._of_turns(node), *self._of_removal(node)):
                yield f"node {node.name}", what
        yield from self._of_secrets()
        least = self._least_turns_to()
        for name, turns in least.items():
            if turns >= self._team.max_turns:
                why = f"it takes {turns} turns to come to it, and `max_turns` is {self._team.max_turns}"
                yield f"node {name}", f"is never entered: {why}"

    def _of_secrets(self) -> Iterator[tuple[str, str]]:
        """Say which secret role shows by all that nothing else is known of its holders."""
        held: dict[str, set[str]] = {}
        for filling in self._team.fillings:
            for agent in filling.agents:
                held.setdefault(agent, set()).add(filling.role)
        secret = {role.name for role in self._policy.roles if role.secret}
        unknown = {frozenset(roles) for roles in held.values() if roles <= secret}
        for name in sorted(*unknown) if len(unknown) == 1 else ():
            yield f"role {name}", "is secret, and only its holders play nothing that all know of: let them play another role too"

    def _of_turns(self, node: Node) -> Iterator[str]:
        yield from self._of_visits(node)
        over = self._over_after(node)
        if over is None:
            return
        ends = f"a visit is over after {_turns(over)}"
        if node.judge is not None and self._asked_after(node) >= over:
            asked = f"{node.judge}, its judge, is never asked: ways out come first, and {ends}"
            yield f"{asked}; give it more of them, or let {node.judge} speak in a node of its own, with a `form`"
        for number, way in enumerate(node.exits, 1):
            when = way.when
            if when is None or (node.max is not None and max(when.turns or 0, when.rounds or 0) > node.max):
                continue  # the policy alone says so
            if (needed := self._held_after(node, when)) > over:
                yield f"{called(node.exits, number)} never has its `when` hold: that takes {_turns(needed)}, and {ends}"
        if left_out := self._left_out(node, over):
            yield f"no turn comes to {listed(left_out)}: {ends}, and others come first"
        if node.turns.mode == "order" and node.tested and over == node.max == self._size(node) > 1:
            why = f"`max` = {node.max} is a round while all are there, and some fill it in twice when fewer are"
            instead = "leave `max` out" if all(way.is_bare for way in node.exits) else "let an exit wait for `rounds`"
            yield f"{why}: {instead}"

    def _of_visits(self, node: Node) -> Iterator[str]:
        caps = {role.name: role.at_most for role in self._policy.roles}
        turns = [None if caps[name] is None else (caps[name] or 0) * len(self._names[name]) for name in node.roles]
        most = sum(one for one in turns if one is not None)
        if node.visits is not None and None not in turns and node.visits > most:
            have = f"its members have {_turns(most)} in all (`at_most`)"
            yield f"may be entered {node.visits} times, and {have}: later visits are passed through without a word"

    def _of_removal(self, node: Node) -> Iterator[str]:
        leading = self._team.leader
        for way in node.exits:
            named = next((one.role for one in node.form if way.remove is not None and one.name == way.remove.field), None)
            if named is not None and named == leading.role:
                owner = self._names[leading.role][0]
                yield f"{owner} opens the group and is never removed, although {named} may be named: let another role be `leader`"

    @cached_property
    def _removes(self) -> bool:
        by_exit = any(way.remove for node in self._policy.nodes for way in node.exits)
        return by_exit or any("remove" in watcher.may for watcher in self._policy.watchers)

    def _is_steady(self, node: Node) -> bool:
        """Whether all members of a node are present each time, as long as nobody is lost."""
        capped = {role.name for role in self._policy.roles if role.at_most is not None}
        return not self._removes and capped.isdisjoint(node.roles)

    def _size(self, node: Node) -> int:
        return sum(len(self._names[name]) for name in node.roles)

    def _over_after(self, node: Node) -> int | None:
        """Return after how many turns a visit is over however members choose; None if that cannot be told."""
        if not self._is_steady(node):
            return None
        bounds = [] if node.max is None else [node.max]
        bounds += [one for way in node.exits if way.by == "rule" and (one := self._counted(node, way)) is not None]
        if node.max is None and all(way.is_bare for way in node.exits) and node.turns.mode in _ROUND_AND_ROUND:
            bounds.append(self._round(node))
        return min(bounds, default=None)

    def _counted(self, node: Node, way: Exit) -> int | None:
        """Return after how many turns an exit is taken that waits for nothing else, and is always open."""
        when = way.when
        if when is None or not self._is_always_open(way) or when != Condition(turns=when.turns, rounds=when.rounds):
            return None
        if when.rounds is not None and node.turns.mode not in _ROUND_AND_ROUND:
            return None
        return max(when.turns or 0, (when.rounds or 0) and self._round(node) + (when.rounds - 1) * self._size(node))

    def _is_always_open(self, way: Exit) -> bool:
        if way.to == END:
            return True
        return self._policy.node(way.to).visits is None

    def _round(self, node: Node) -> int:
        """Return how many turns the first round has; side by side who opens the node speaks once more."""
        return self._size(node) + (node.turns.mode == "together" and node.opens is not None)

    def _asked_after(self, node: Node) -> int:
        """Return after how many turns the judge may be asked first. A hub and two whom it names are a round too."""
        if node.asked == "turn":
            return 1
        return min(self._size(node), 3) if node.turns.mode == "hub" else self._round(node)

    def _held_after(self, node: Node, when: Condition) -> int:
        """Return how many turns a visit has at least when a condition holds."""
        asked = self._size(node) if when.of is None else len(self._names[when.of])
        filled = {"last": 1, "any": 1, "all": asked, "most": asked // 2 + 1}[when.by] if when.field is not None else 0
        opening = bool(filled and node.opens is not None and node.opens.say)  # words that are given fill nothing in
        return max(when.turns or 0, (when.rounds or 0) * self._size(node), filled + opening, 1)

    def _left_out(self, node: Node, over: int) -> Sequence[str]:
        """Name the roles, or some holders of one, that have no turn in any visit."""
        if node.turns.mode not in _ROUND_AND_ROUND:
            return ()
        places = [(role, name) for role in node.roles for name in self._names[role]]
        if node.opens is not None:
            first = next(number for number, (role, _) in enumerate(places) if role == node.opens.role)
            places = places[first:] + places[:first] if node.turns.mode == "order" else [places[first], *places]
        speaking = places[:over]
        silent = [one for one in dict.fromkeys(places) if one not in speaking]
        roles = {role for role, _ in speaking}
        return [*dict.fromkeys(name if role in roles else role for role, name in silent)]

    def _least_turns_to(self) -> Mapping[str, int]:
        """Return for each node how many turns are used up at least when it is entered."""
        found: dict[str, int] = {}
        ahead = [(0, self._policy.nodes[0].name)]
        while ahead:
            turns, name = heappop(ahead)
            if name in found:
                continue
            found[name] = turns
            node = self._policy.node(name)
            for way in node.exits:
                if way.to != END:
                    heappush(ahead, (turns + self._left_after(node, way), way.to))
        return found

    def _left_after(self, node: Node, way: Exit) -> int:
        """Return how many turns a visit has at least that is left by an exit; nodes in which nobody is present have none."""
        if not self._is_steady(node):
            return 0
        if way.by == "speaker":
            return 1
        if way.judge is not None:
            return self._asked_after(node)
        at_last = node.max if node.max is not None else self._size(node) if all(one.is_bare for one in node.exits) else 1
        return at_last if way.when is None else min(at_last, self._held_after(node, way.when))


_ROUND_AND_ROUND = ("order", "together")
"""The turns in which each member has one before any has two."""


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"
