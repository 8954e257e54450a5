"""Checks of a policy across its parts: every reference exists, every node can be left, and no message is always rejected.

A policy without errors ends, even if every member is silent. Each error names its place, the wrong value and a fix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, islice
from typing import Literal, NamedTuple

from ioa.protocol.codec import encode_value
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import (
    END,
    MAX_FIELD_CHARS,
    MAX_OPTION_CHARS,
    SHORT_FORMS,
    STAY,
    Condition,
    FormField,
    Node,
    listed,
    nearest,
)

MAX_POLICY_BYTES = 150_000
"""Maximum bytes of an encoded policy, which is part of its goal and of the first entry of its group."""
MAX_STATE_BYTES = 16_000
"""Maximum bytes that a policy adds to the state of its group, which is part of each entry."""
MAX_FORKS = 16
"""Maximum number of nodes that fork, and of nodes that join: checking them takes time for each pair of nodes."""
MAX_FINDINGS = 20
_TEXT_BYTES, _OPTION_BYTES, _VALUE_BYTES, _BOARD_BYTES = 4 * MAX_FIELD_CHARS, 4 * MAX_OPTION_CHARS, 70, 40
_COURSE_BYTES, _NODE_BYTES, _HOLDER_BYTES = 1_500, 16, 16
"""Maximum bytes of the place in the policy: struck parts included, per node, and per holder of a role."""


class PolicyFinding(NamedTuple):
    """An error or a warning; `where` names the role, node or watcher."""

    kind: Literal["error", "warning"]
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


Found = Iterator[tuple[str, str]]
"""Pairs of a place and a description."""


def check(policy: Policy, holders: Mapping[str, int] | None = None) -> tuple[PolicyFinding, ...]:
    """Return the errors of a policy, or its warnings if it has no error.

    Args:
        policy: The policy.
        holders: Number of members that hold each role, if it is known.
    """
    return errors_of(policy, holders) or _findings("warning", _warnings(policy))


def errors_of(policy: Policy, holders: Mapping[str, int] | None = None) -> tuple[PolicyFinding, ...]:
    """Return the errors of the first of four steps that has any: names, single nodes and watchers, the graph, and sizes."""
    for step in (_wrong_names(policy), _wrong_parts(policy), _wrong_ways(policy), _wrong_sizes(policy, holders)):
        if found := _findings("error", step):
            return found
    return ()


def _findings(kind: Literal["error", "warning"], found: Found) -> tuple[PolicyFinding, ...]:
    return tuple([PolicyFinding(kind, *one) for one in dict.fromkeys(islice(found, MAX_FINDINGS))])


def state_bytes(policy: Policy, holders: Mapping[str, int]) -> int:
    """Return the maximum bytes that a policy adds to the state: values of the largest node, the board, and the place in the policy.

    Args:
        policy: The policy.
        holders: Number of members that hold each role.
    """
    sizes = {"text": _TEXT_BYTES, "option": _OPTION_BYTES}
    filled_in = max(
        sum(holders[role] for role in node.roles) * sum(sizes.get(field.kind, _VALUE_BYTES) for field in node.tested)
        for node in policy.nodes
    )
    place = _COURSE_BYTES + _NODE_BYTES * len(policy.nodes) + _HOLDER_BYTES * sum(holders.values())
    return place + filled_in + _BOARD_BYTES * len({name for node in policy.nodes for name in node.writes})


def _wrong_sizes(policy: Policy, holders: Mapping[str, int] | None) -> Found:
    size = len(encode_value(policy.model_dump(mode="json")))
    if size > MAX_POLICY_BYTES:
        yield "", f"the policy has {size:,} bytes; {MAX_POLICY_BYTES:,} are allowed: shorten its prompts"
    size = 0 if holders is None else state_bytes(policy, holders)
    if size > MAX_STATE_BYTES:
        fix = "test fewer texts, or write fewer texts on the board"
        yield "", f"the state may reach {size:,} bytes; {MAX_STATE_BYTES:,} are allowed: {fix}"


def _twice(names: Iterable[str]) -> Iterator[str]:
    return (name for name, count in Counter(names).items() if count > 1)


def _at(part: Node | int) -> str:
    return f"watcher {part}" if isinstance(part, int) else f"node {part.name}"


def _called(node: Node, number: int) -> str:
    """Name an exit by its target, and by its number if several lead there."""
    to = node.exits[number - 1].to
    return f"the exit to {to}" if sum(way.to == to for way in node.exits) == 1 else f"exit {number}, to {to},"


def _wrong_names(policy: Policy) -> Found:
    roles, nodes = policy.role_numbers, policy.node_numbers
    for what, parts, reserved in (("role", policy.roles, "all"), ("node", policy.nodes, END)):
        names = [one.name for one in parts]
        yield from (("", f"two {what}s are called {name!r}; rename one of them") for name in _twice(names))
        if reserved in names:
            yield "", f"no {what} may be called {reserved!r}, which has a meaning of its own"
    for where, name in _named_roles(policy):
        if name is not None and name not in roles:
            yield where, f"no role is called {name!r}; there are {listed(roles)}{nearest(name, roles)}"
    for node in policy.nodes:
        names = [one.name for one in node.form]
        yield from ((_at(node), f"two fields are called {name!r}; rename one of them") for name in _twice(names))
        for name in [one.role for one in node.form if one.role is not None and one.role not in roles]:
            meant = nearest(name, [*roles, "member", "number", "text", "yes/no"])
            yield _at(node), f"a field cannot be {name!r}; it may be {SHORT_FORMS}, and the roles are {listed(roles)}{meant}"
        for name in [way.to for way in node.exits if way.to not in (END, *nodes)]:
            yield _at(node), f"there is no node {name!r} to go to{nearest(name, [*nodes, END])}"
    for number, watcher in enumerate(policy.watchers, 1):
        for name in [name for name in (watcher.node, *watcher.go) if name is not None and name not in nodes]:
            yield _at(number), f"there is no node {name!r}{nearest(name, nodes) or f'; there are {listed(nodes)}'}"


def _named_roles(policy: Policy) -> Iterator[tuple[str, str | None]]:
    """Yield each role that is named, with the place, apart from the roles of fields."""
    yield "leader", policy.leader
    for role in policy.roles:
        yield from ((f"role {role.name}", name) for name in (role.memory.last if role.memory else ()))
    for number, watcher in enumerate(policy.watchers, 1):
        yield from ((_at(number), name) for name in (watcher.role, watcher.by))
    for node in policy.nodes:
        table = node.heard_by if isinstance(node.heard_by, Mapping) else {"all": node.heard_by}
        heard_by = [name for role, names in table.items() for name in (role, *(names if isinstance(names, tuple) else ()))]
        tests = [name for way in node.exits if way.when for name in (way.when.of, way.when.left)]
        opener, reviewer = node.opens.role if node.opens else None, node.review.by if node.review else None
        asked = (opener, node.turns.by, *_followed(node), reviewer, *(way.judge for way in node.exits))
        yield from ((_at(node), name) for name in (*node.roles, *(one for one in heard_by if one != "all"), *asked, *tests))


def _followed(node: Node) -> Iterator[str]:
    return (name for pair in node.turns.follow.items() for name in pair)


def _wrong_parts(policy: Policy) -> Found:
    """Yield errors within a node or a watcher; every name exists."""
    if all(role.human for role in policy.roles):
        yield "", "only people take part: let an agent hold one of the roles, which opens the group"
    if policy.leader is None and policy.heard_by == "leader":
        yield "", _NO_LEADER
    for node in policy.nodes:
        for wrong in (_wrong_turns(policy, node), _wrong_hearing(policy, node), _wrong_exits(node)):
            yield from ((_at(node), what) for what in wrong)
    for number, watcher in enumerate(policy.watchers, 1):
        role = policy.roles[policy.role_numbers[watcher.role]]
        if "add" in watcher.may and (role.human or role.secret):
            what = "a person" if role.human else "secret"
            yield _at(number), f"{role.name} is {what}, and cannot add a member: leave out `add`"
        if "add" in watcher.may and not policy.able(policy.role_numbers):
            yield _at(number), f"`add` needs {_ABLE}"
        if policy.ends == "last":
            result = "which ends = 'last' makes the result"
            yield _at(number), f"is asked after the last message, {result}: let the leader conclude"


_NO_LEADER = "heard_by = 'leader' needs `leader`, the role that hears all others"
_ABLE = "a role in which an agent may join: neither secret nor held by a person"


def _wrong_turns(policy: Policy, node: Node) -> Iterator[str]:
    lone = [name for name in ("asks", "tasks", "invites", "review") if getattr(node, name)]
    if node.turns.mode == "together":
        yield from (f"`{name}` needs one speaker at a time, and here all speak in parallel: use a node of its own" for name in lone)
    if node.review is not None:
        sent = [name for name in lone if name in ("asks", "tasks")]
        yield from (f"`{name}` sends words that `review` has not passed: use a node of its own" for name in sent)
    if node.turns.mode == "hub" and node.turns.by not in node.roles:
        yield f"the hub {node.turns.by} does not speak here: add it to `roles`"
    for name in [name for name in _followed(node) if name not in node.roles]:
        yield f"`follow` names {name}, which does not speak here: add it to `roles`"
    if (opens := node.opens) is not None:
        if opens.role not in node.roles:
            yield f"{opens.role} opens it and does not speak here: add it to `roles`"
        if opens.say and policy.roles[policy.role_numbers[opens.role]].human:
            yield f"{opens.role} is a person, whose words are its own: leave out `say`"
        for why in [guard.objection(opens.say) for guard in node.guards if opens.say]:
            yield from [f"its guards reject the opening words of {opens.role}: {why}"] if why else ()


def _wrong_hearing(policy: Policy, node: Node) -> Iterator[str]:
    """Yield errors of `heard_by`, and parts that would reveal the holder of a secret role."""
    if node.heard_by == "leader" and policy.leader is None:
        yield _NO_LEADER
    if isinstance(node.heard_by, Mapping):
        yield from (f"heard_by names {name}, which does not speak here" for name in node.heard_by if name not in node.roles)
    if node.heard_by in ((), {}):
        yield "heard_by is empty: leave it out, or list roles"
    knowing = {role.name for role in policy.roles if role.hears_all}
    for one in node.form:
        secret = one.role is not None and policy.role_numbers[one.role] in policy.secrets
        if secret and not {*node.roles} <= {*knowing, one.role}:
            yield f"the field {one.name!r} would tell who holds {one.role}, which is secret: let it be a `member`"
    if node.invites and not policy.able(node.roles):
        yield f"`invites` needs {_ABLE}"
    number = policy.node_numbers[node.name]
    if node.invites and any(policy.hearers(number, (role,)) is not None for role in policy.speaking[number]):
        yield "`invites` tells all members who joins, and not all hear this node: leave out `heard_by`, or `invites`"


def _wrong_exits(node: Node) -> Iterator[str]:
    fields = {one.name: one for one in node.form}
    for number, way in enumerate(node.exits, 1):
        name = _called(node, number)
        if way.by == "speaker" and node.turns.mode == "together":
            yield f"{name} is chosen by a speaker, and where all speak in parallel no member chooses: let a rule or a role take it"
        if way.judge is not None and way.to == STAY:
            yield f"{name} cannot be chosen by {way.judge}, because {STAY!r} means to go on here: rename that node"
        if way.when is not None and way.when.field is not None:
            yield from (f"{name} {what}" for what in _wrong_test(node, way.when, way.when.field, fields))
        if way.remove is not None:
            field = fields.get(way.remove.field)
            if field is None or field.kind != "member":
                why = "which is no member" if field else f"which its form lacks{nearest(way.remove.field, fields)}"
                yield f"{name} removes the member in the field {way.remove.field!r}, {why}"
    judges = list(dict.fromkeys(way.judge for way in node.exits if way.judge is not None))
    if len(judges) > 1:
        yield f"several roles judge it, {listed(judges)}: let one of them do so"


def _wrong_test(node: Node, when: Condition, name: str, fields: Mapping[str, FormField]) -> Iterator[str]:
    field, value = fields.get(name), when.equals
    if when.of is not None and when.of not in node.roles:
        yield f"tests values of {when.of}, which does not speak here"
    if field is None:
        yield f"tests the field {name!r}, which its form lacks{nearest(name, fields)}"
    elif when.like is not None and field.kind not in ("text", "option"):
        yield f"has `like`, which tests texts and options, and {name!r} is of kind {field.kind}"
    elif value is not None and not field.accepts(value):
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        yield f"waits for {name!r} to be {shown}, which it never is; it is {field.description}"


def _wrong_ways(policy: Policy) -> Found:
    """Yield errors of the graph: nodes that are never entered or never left, and results that no member hears."""
    reached, ending = policy.reached(0), _reaching_end(policy)
    for number, node in enumerate(policy.nodes):
        if number not in reached:
            yield _at(node), "no exit leads to it"
        elif node.name not in ending:
            yield _at(node), "no way leads from it to the end"
        elif not _ends_surely(node) and not _ended_by(node):
            bare = next((way.to for way in node.exits if way.is_bare), None)
            is_late = bare is not None and not all(way.is_bare for way in node.exits)
            why = f"the exit to {bare} is taken only at `max`; " if is_late else ""
            fix = "give it `when = { rounds = 1 }`" if is_late and node.turns.mode == "together" else "give the node `max`"
            yield _at(node), f"may never end: {why}{fix}"
        if policy.ends == "last":
            if policy.heard_by != "all" or node.heard_by not in (None, "all", ("all",)):
                result = "ends = 'last' makes the last message the result"
                yield _at(node), f"{result}, and not all members hear this node: leave out one of both"
            if any(way.judge is not None and way.to == END for way in node.exits):
                yield _at(node), f"ends = 'last', and {node.judge} may end it after the last message: add a node after it"
    yield from _wrong_forks(policy)


def _wrong_forks(policy: Policy) -> Found:
    """Yield forks with one branch, joins that never open, and branches that a watcher may restart."""
    forks = _forks(policy)
    if max(len(forks), len(policy.awaited)) > MAX_FORKS:
        yield "", f"more than {MAX_FORKS} nodes fork or join (take, join = 'all'): split the team"
        return
    for fork in forks:
        node = policy.nodes[fork]
        if len(policy.targets[fork]) < 2:
            yield _at(node), "take = 'all' needs exits to several nodes: add an exit, or leave out `take`"
        if any(way.remove for way in node.exits):
            yield _at(node), "take = 'all', and `remove` belongs to one exit: let the node before or after it remove"
    for join, awaited in policy.awaited.items():
        reached = {one: policy.reached(one, {join}) for one in {*awaited, *forks}}
        for pair in combinations(sorted(awaited), 2):
            if not any(reached[one].issuperset(pair) for one in {*pair, *forks}):
                one, other = (policy.nodes[number].name for number in pair)
                what = f"waits for {one} and {other}, and only one of them is ever done: let a node before them take = 'all'"
                yield _at(policy.nodes[join]), what
    branches = {number for fork in forks for number in _branches(policy, fork)}
    for number, watcher in enumerate(policy.watchers, 1):
        for name in [name for name in watcher.go if policy.node_numbers[name] in branches]:
            yield _at(number), f"cannot restart {name}, which is in a branch of a fork: let it restart the node that forks"


def _forks(policy: Policy) -> list[int]:
    return [number for number, node in enumerate(policy.nodes) if node.take == "all"]


def _branches(policy: Policy, fork: int) -> set[int]:
    """Return the nodes from a fork up to the joins that wait for each of its branches."""
    branches = policy.targets[fork]
    joins = set[int]()
    for join, awaited in policy.awaited.items():
        parts = {one: awaited & policy.reached(one, {join}) for one in branches}
        if all(part.difference(*(parts[other] for other in branches if other != one)) for one, part in parts.items()):
            joins.add(join)
    return {number for branch in branches for number in policy.reached(branch, joins)}


def _targets(node: Node) -> list[str]:
    return [way.to for way in node.exits] or [END]


def _reaching_end(policy: Policy) -> set[str]:
    """Return the nodes from which a way leads to the end, also because all visits of their targets are used up."""
    bounded = {node.name for node in policy.nodes if node.visits is not None}
    ending = {END} | {node.name for node in policy.nodes if bounded.issuperset(_targets(node))}
    while more := {node.name for node in policy.nodes if node.name not in ending and not ending.isdisjoint(_targets(node))}:
        ending |= more
    return ending


def _ends_surely(node: Node) -> bool:
    """Return True if the turns of a node are over at some time, whatever its members choose."""
    everybody_speaks = node.turns.mode in ("order", "random", "together")
    by_rules = [way.when for way in node.exits if way.by == "rule" and way.when is not None]
    counted = [when for when in by_rules if when.visits is None and when.field is None and when.left is None]
    return (
        node.max is not None
        or any(everybody_speaks or when.rounds is None for when in counted)
        or (everybody_speaks and all(way.is_bare for way in node.exits))
    )


def _ended_by(node: Node) -> str | None:
    if any(way.by == "speaker" for way in node.exits):
        return "its speakers end it"
    return node.judge and f"its judge, {node.judge}, ends it"


def _warnings(policy: Policy) -> Found:
    used = {name for node in policy.nodes for name in (*node.roles, *node.deciding, *(one.role for one in node.form))}
    used |= {policy.leader, *(watcher.role for watcher in policy.watchers)}
    for role in policy.roles:
        is_informed = role.secret and role.prompt
        if role.name not in used and not is_informed and not any(node.tasks for node in policy.nodes):
            yield f"role {role.name}", "its holders never have a turn: add it to a node, or leave it out"
    yield from _doubtful_joins(policy)
    for node in policy.nodes:
        yield from ((_at(node), what) for what in _doubts(policy, node))
    for number, watcher in enumerate(policy.watchers, 1):
        if policy.hides and policy.role_numbers[watcher.role] not in policy.hearing_all:
            yield _at(number), f"{watcher.role} may not hear all messages that it watches: set hears_all"
    leader = policy.leader or policy.roles[0].name
    if policy.ends == "leader" and not any(_hears(policy, leader, node) for node in policy.nodes):
        yield f"role {leader}", "states the conclusion and hears no message: set hears_all, or add it to heard_by"
    free = {node.name: set(_targets(node)) for node in policy.nodes if node.visits is None}
    try:
        TopologicalSorter({name: targets & free.keys() for name, targets in free.items()}).prepare()
    except CycleError as error:
        loop = sorted(set(error.args[1]), key=list(free).index)
        yield f"nodes {listed(loop)}", "only max_turns bounds this loop: give one of them `visits`"


def _doubts(policy: Policy, node: Node) -> Iterator[str]:
    number = policy.node_numbers[node.name]
    for role in [role for role in policy.speaking[number] if role in policy.secrets and policy.hearers(number, (role,)) is None]:
        yield f"{policy.roles[role].name} is secret, and all members hear who speaks here: set heard_by"
    for name in [name for name in (node.judge, node.turns.by) if name is not None and not _hears(policy, name, node)]:
        yield f"{name} decides here and does not hear the messages: add it to heard_by"
    if not _ends_surely(node):
        yield f"only {_ended_by(node)}, apart from max_turns: give it `max`"


def _doubtful_joins(policy: Policy) -> Found:
    for join, awaited in policy.awaited.items():
        name = policy.nodes[join].name
        if len(awaited) < 2:
            yield f"node {name}", "join = 'all', and fewer than two nodes lead to it: leave out `join`"
        for fork in [policy.nodes[number] for number in _forks(policy)]:
            ways = [(way, policy.reached(policy.node_numbers[way.to], {join}) & awaited) for way in fork.exits if way.to != END]
            surely = set[int]().union(*(done for way, done in ways if way.when is None))
            for to in dict.fromkeys(way.to for way, done in ways if way.when is not None and done - surely):
                yield _at(fork), f"goes to {to} only `when` its condition holds, and {name} waits for it: the group may end there"


def _hears(policy: Policy, name: str, node: Node) -> bool:
    hearers, number = policy.hearers(policy.node_numbers[node.name], ()), policy.role_numbers[name]
    return hearers is None or name in node.roles or number in hearers or number in policy.hearing_all
