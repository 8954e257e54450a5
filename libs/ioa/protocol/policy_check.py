"""What is wrong with a policy, in sentences that say where and what to do. A policy without errors ends, whoever falls silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Literal, NamedTuple

from ioa.protocol.codec import encode_value
from ioa.protocol.policy import END, Node, Policy

MAX_POLICY_BYTES = 150_000
"""What a policy may hold, encoded: it travels with its goal and stands in the first entry of its group."""


class Finding(NamedTuple):
    """Something that is wrong, or worth a thought; `where` names the node or role."""

    kind: Literal["error", "warning"]
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


def check(policy: Policy) -> tuple[Finding, ...]:
    """Say all that is wrong with a policy, errors first; empty if nothing is. What makes no sense is told once."""
    errors = [*_of_names(policy), *_of_references(policy)]
    if not errors:
        errors = [*_of_ways(policy), *_of_size(policy)]
    return (*errors, *(() if errors else _warnings(policy)))


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest what may have been meant, as the end of a sentence."""
    names = list(known)
    beginning = [one for one in names if len(one) > 1 and name and (name.startswith(one) or one.startswith(name))]
    close = beginning or get_close_matches(name, names, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def listed(names: Iterable[str]) -> str:
    """Name some of them."""
    known = list(names)
    return ", ".join(known[:12]) + (" …" if len(known) > 12 else "")


def _error(where: str, what: str) -> Finding:
    return Finding("error", where, what)


def _at(node: Node) -> str:
    return f"node {node.name}"


def _of_names(policy: Policy) -> Iterator[Finding]:
    for what, names in (("role", [role.name for role in policy.roles]), ("node", [node.name for node in policy.nodes])):
        for name, count in Counter(names).items():
            if count > 1:
                yield _error("", f"two {what}s are called {name!r}; give one of them another name")
    if END in policy.node_numbers:
        yield _error("", f"no node may be called {END!r}: it is where exits lead that end the discussion")
    if "all" in policy.role_numbers:
        yield _error("", "no role may be called 'all'")


def _of_references(policy: Policy) -> Iterator[Finding]:
    roles, nodes = policy.role_numbers, policy.node_numbers

    def role(where: str, name: str) -> Iterator[Finding]:
        if name not in roles:
            yield _error(where, f"no role is called {name!r}; there are {listed(roles)}{nearest(name, roles)}")

    if policy.leader is not None:
        yield from role("leader", policy.leader)
    for node in policy.nodes:
        where = _at(node)
        for name, count in Counter(node.roles).items():
            yield from role(where, name)
            if count > 1:
                yield _error(where, f"the role {name!r} is named twice")
        if node.opens is not None:
            yield from role(where, node.opens.role)
            if node.opens.role in roles and node.opens.role not in node.roles:
                yield _error(where, f"{node.opens.role} opens it and is not in it")
        yield from _of_turns(node, roles)
        for way in node.exits:
            if way.to != END and way.to not in nodes:
                yield _error(where, f"there is no node {way.to!r} to go to{nearest(way.to, [*nodes, END])}")
            if way.when is not None and not way.when.model_dump(exclude_none=True):
                yield _error(where, f"the exit to {way.to} has an empty `when`; leave it out, or say when")


def _of_turns(node: Node, roles: Iterable[str]) -> Iterator[Finding]:
    where, turns = _at(node), node.turns
    if turns.mode == "hub" and turns.by is None:
        yield _error(where, "turns = 'hub' needs `by`, the role that speaks after everybody else")
    if turns.mode != "hub" and turns.by is not None:
        yield _error(where, f"turns = {turns.mode!r} has no `by`")
    if turns.mode == "follow" and not turns.follow:
        yield _error(where, "turns = 'follow' needs `follow`, which role speaks after which")
    if turns.mode != "follow" and turns.follow:
        yield _error(where, f"turns = {turns.mode!r} has no `follow`")
    for name in filter(None, (turns.by, *(one for pair in turns.follow.items() for one in pair))):
        if name not in roles:
            yield _error(where, f"no role is called {name!r}; there are {listed(roles)}{nearest(name, roles)}")
        elif name not in node.roles:
            yield _error(where, f"its turns name {name}, which is not in it")


def _of_ways(policy: Policy) -> Iterator[Finding]:
    first = policy.nodes[0].name
    reached, ending = _reachable(policy, first), _reaching_end(policy)
    for node in policy.nodes:
        if node.name not in reached:
            yield _error(_at(node), "nothing leads to it")
        elif node.name not in ending:
            yield _error(_at(node), "no way leads from it to the end")
        elif not _ends_surely(node) and not _has_speaker_exit(node):
            yield _error(_at(node), "may never end: give it `max`")


def _targets(node: Node) -> Sequence[str]:
    return [way.to for way in node.exits] or [END]


def _reachable(policy: Policy, first: str) -> set[str]:
    reached, left = {first}, [first]
    while left:
        for name in _targets(policy.node(left.pop())):
            if name not in reached and name != END:
                reached.add(name)
                left.append(name)
    return reached


def _reaching_end(policy: Policy) -> set[str]:
    ending = {END}
    while more := {node.name for node in policy.nodes if node.name not in ending and not ending.isdisjoint(_targets(node))}:
        ending |= more
    return ending


def _ends_surely(node: Node) -> bool:
    """Whether its turns come to an end however its members choose: they are counted, or everybody has one in time."""
    everybody_speaks = node.turns.mode in ("order", "random")
    by_rules = [way.when for way in node.exits if way.by == "rule" and way.when is not None]
    return (
        node.max is not None
        or any(when.visits is None and (everybody_speaks or when.rounds is None) for when in by_rules)
        or (everybody_speaks and all(way.is_bare for way in node.exits))
    )


def _has_speaker_exit(node: Node) -> bool:
    return any(way.by == "speaker" for way in node.exits)


def _of_size(policy: Policy) -> Iterator[Finding]:
    size = len(encode_value(policy.model_dump(mode="json")))
    if size > MAX_POLICY_BYTES:
        yield _error("", f"the policy has {size:,} bytes, and {MAX_POLICY_BYTES:,} are the most: shorten its prompts")


def _warnings(policy: Policy) -> Iterator[Finding]:
    speaking = {name for node in policy.nodes for name in node.roles}
    for role in policy.roles:
        if role.name not in speaking and role.name != policy.leader:
            yield Finding("warning", f"role {role.name}", "nobody who holds it ever has a turn")
    for node in policy.nodes:
        if not _ends_surely(node):
            yield Finding("warning", _at(node), "only its speakers end it, besides max_turns")
    if loop := _unbounded_loop(policy):
        yield Finding("warning", f"nodes {listed(loop)}", "a loop bounded by max_turns only; give one of them `visits`")


def _unbounded_loop(policy: Policy) -> Sequence[str]:
    free = {node.name: set(_targets(node)) for node in policy.nodes if node.visits is None}
    try:
        TopologicalSorter({name: targets & free.keys() for name, targets in free.items()}).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]), key=list(free).index)
    return ()
