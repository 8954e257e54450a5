"""What is wrong with a policy, in sentences that say where and what to do. A policy without errors ends, whoever falls silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from heapq import nlargest
from itertools import chain, islice
from typing import Literal, NamedTuple, get_args

from ioa.protocol.codec import encode_value
from ioa.protocol.policy import (
    END,
    MAX_FIELD_CHARS,
    NOTHING,
    STAY,
    Condition,
    Exit,
    FieldKind,
    FormField,
    Node,
    Policy,
    Watcher,
    WatchVerb,
)

MAX_POLICY_BYTES = 150_000
"""What a policy may hold, encoded: it travels with its goal and stands in the first entry of its group."""
MAX_STATE_BYTES = 16_000
"""What a policy may add to the state of its group: each entry of the group carries it."""
_VALUE_BYTES: Mapping[FieldKind, int] = {"text": 4 * MAX_FIELD_CHARS, "number": 9, "yes_no": 1, "member": 1, "option": 1}
_VERSION_BYTES = 7
"""What the state holds of a thing on the board besides its name."""
_MOST_MEMBERS, _MOST_STRETCHES = 64, 128
_COURSE_BYTES, _NODE_BYTES, _MEMBER_BYTES, _STRETCH_BYTES = 500, 16, 14, 7
"""What it holds of where the group is; how often and when a node was entered and whether it is done; of a member's turns and of
its roles but the first; and of a stretch that is struck."""


MOST_FINDINGS = 20
"""So many mistakes are told; to look for all of thousands would stop whoever reads the team."""
_MOST_COMPARED, _LONGEST_COMPARED, _MOST_LIKE = 256, 64, 8
"""With how many names one is compared to find what was meant, how long it may be, and with how many letter by letter: those that
have the most pairs of letters in common with it. Of each two long ones that takes a twentieth of a millisecond."""
MOST_GUARDED_WORDS = 64
"""How many words the guards of a node may have together: whoever reads a message looks for each of them in all of it."""


class PolicyFinding(NamedTuple):
    """Something that is wrong, or worth a thought; `where` names the node or role."""

    kind: Literal["error", "warning"]
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


def check(policy: Policy) -> tuple[PolicyFinding, ...]:
    """Say what is wrong with a policy, errors first, of many some; empty if nothing is. What makes no sense is told once."""
    return errors_of(policy) or tuple(_warnings(policy))


def errors_of(policy: Policy) -> tuple[PolicyFinding, ...]:
    """Say what is wrong with a policy, of many some, and nothing of what is worth a thought; empty if nothing is."""
    errors = tuple(dict.fromkeys(islice(errors_of_names(policy), MOST_FINDINGS)))
    return errors or tuple(islice(chain(_of_ways(policy), _of_size(policy)), MOST_FINDINGS))


def errors_of_names(policy: Policy) -> Iterator[PolicyFinding]:
    """Say what is wrong with names, and with what goes together. The policy may lack parts of which something else is told."""
    yield from _of_names(policy)
    yield from _of_references(policy)


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest what may have been meant, as the end of a sentence."""
    names = list(islice(known, _MOST_COMPARED)) if len(name) <= _LONGEST_COMPARED else []
    beginning = [one for one in names if len(one) > 1 and name and (name.startswith(one) or one.startswith(name))]
    close = beginning or get_close_matches(name, _most_alike(name, names), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _most_alike(name: str, names: Sequence[str]) -> Sequence[str]:
    pairs = _pairs_in(name)
    return nlargest(_MOST_LIKE, names, key=lambda one: len(pairs & _pairs_in(one)))


def _pairs_in(name: str) -> frozenset[str]:
    """Return each two letters that stand side by side in a name, its first and last one with what stands around it."""
    return frozenset(map(str.__add__, f" {name}", f"{name} "))


def listed(names: Iterable[str]) -> str:
    """Name some of them."""
    known = list(names)
    return ", ".join(known[:12]) + (" …" if len(known) > 12 else "")


SHORT_FORMS = "`text`, `number`, `1..10`, `yes/no`, `this|that`, `member`, or a role"
"""How a field of a form may be written in short; a `?` behind it says that it may be left out."""
_OPTIONS = ("has `options`, and is no choice", "needs `options` to choose from")


def faults_of(form: Iterable[FormField]) -> Iterator[str]:
    """Say what makes no sense in a form or a question, apart from the names of roles."""
    form = list(form)
    for name, count in Counter(one.name for one in form).items():
        if count > 1:
            yield f"two fields are called {name!r}; give one of them another name"
    for one in form:
        if one.role is not None and one.kind != "member":
            yield f"the field {one.name!r} has a `role`, which goes with members"
        if (one.lowest, one.highest) != (None, None) and one.kind != "number":
            yield f"the field {one.name!r} has bounds, which go with numbers"
        elif one.lowest is not None and one.highest is not None and one.lowest > one.highest:
            yield f"no number is right for the field {one.name!r}: {one.lowest} is more than {one.highest}"
        if bool(one.options) != (one.kind == "option"):
            yield f"the field {one.name!r} {_OPTIONS[one.kind == 'option']}"
        elif len(set(one.options)) < len(one.options):
            yield f"the field {one.name!r} has an option twice"


def state_bytes(policy: Policy, holders: Mapping[str, int]) -> int:
    """Return what a policy may add to the state: what is filled in, of the node where that is most, the board, and where it stands.

    What members say does not count: the tasks that they give out, and the questions that they ask each other.

    Args:
        policy: The policy.
        holders: How many members hold each role.
    """
    filled_in = max(
        sum(holders[role] for role in node.roles) * sum(2 + _VALUE_BYTES[field.kind] for field in node.tested)
        for node in policy.nodes
    )
    on_board = sum(len(name) + _VERSION_BYTES for name in {name for node in policy.nodes for name in node.writes})
    held = sum(holders.values())
    of_members = held + _MEMBER_BYTES * min(held, _MOST_MEMBERS)
    struck = _MOST_STRETCHES * _STRETCH_BYTES if any(watcher.go for watcher in policy.watchers) else 0
    return filled_in + on_board + _COURSE_BYTES + _NODE_BYTES * len(policy.nodes) + of_members + struck


def _error(where: str, what: str) -> PolicyFinding:
    return PolicyFinding("error", where, what)


def _at(node: Node) -> str:
    return f"node {node.name}"


def _of_names(policy: Policy) -> Iterator[PolicyFinding]:
    for what, names in (("role", [role.name for role in policy.roles]), ("node", [node.name for node in policy.nodes])):
        for name, count in Counter(names).items():
            if count > 1:
                yield _error("", f"two {what}s are called {name!r}; give one of them another name")
    if END in policy.node_numbers:
        yield _error("", f"no node may be called {END!r}: it is where exits lead that end the discussion")
    if "all" in policy.role_numbers:
        yield _error("", "no role may be called 'all'")


def _of_references(policy: Policy) -> Iterator[PolicyFinding]:
    roles = policy.role_numbers
    if all(role.human for role in policy.roles):
        yield _error("", "only people take part: let an agent play one of the roles, which opens the group")
    if policy.leader is not None:
        yield from _of_role("leader", policy.leader, roles)
    for number, watcher in enumerate(policy.watchers, 1):
        yield from _of_watcher(policy, number, watcher)
    if policy.heard_by == "leader" and policy.leader is None:
        yield _error("", "heard_by = 'leader' needs `leader`, the role that hears all others")
    for role in policy.roles:
        for name in () if role.memory is None else role.memory.last:
            yield from _of_role(f"role {role.name}", name, roles)
    for node in policy.nodes:
        yield from _of_cast(node, roles)
        yield from _of_hearing(policy, node, roles)
        yield from _of_turns(node, roles)
        yield from _of_inviting(policy, node)
        opens = node.opens
        if opens is not None and opens.say and opens.role in roles and policy.roles[roles[opens.role]].human:
            yield _error(_at(node), f"{opens.role} is a person, who finds words of its own to open it: leave `say` out")
        for what in faults_of(node.form):
            yield _error(_at(node), what)
        yield from _of_form(node, roles)
        yield from _of_feedback(node, roles)
        yield from _of_asking(node)
        yield from _of_tasks(node)
        yield from _of_exits(node, roles, policy.node_numbers)


def _of_watcher(policy: Policy, number: int, watcher: Watcher) -> Iterator[PolicyFinding]:
    where, nodes = f"watcher {number}", policy.node_numbers
    for name in filter(None, (watcher.role, watcher.by)):
        yield from _of_role(where, name, policy.role_numbers)
    for name in (*([watcher.node] if watcher.node else []), *watcher.go):
        if name not in nodes:
            yield _error(where, f"there is no node {name!r}{nearest(name, nodes) or f'; there are {listed(nodes)}'}")
    if ("go" in watcher.may) != bool(watcher.go):
        yield _error(where, "`go` lists the nodes that it may begin anew, and goes with `may = ['go']`")
    for name in watcher.go:
        if name in (NOTHING, *get_args(WatchVerb)):
            yield _error(where, f"cannot choose the node {name!r}, which is another of its options: give that node another name")
    if "add" in watcher.may:
        yield from _of_adding(policy, where, watcher)
    if policy.ends == "last":
        yield _error(where, "is asked after the last message, which ends = 'last' would make the result: let the leader conclude")


def _of_adding(policy: Policy, where: str, watcher: Watcher) -> Iterator[PolicyFinding]:
    """Say why a watcher cannot have others join: all are told who joins, and who has added it."""
    role = next((one for one in policy.roles if one.name == watcher.role), None)
    if role is not None and role.human:
        yield _error(where, f"{role.name} is a person, who has nobody join: leave `add` out")
    elif role is not None and role.secret:
        yield _error(where, f"{role.name} is secret, and all are told who has somebody join: leave `add` out")
    if not policy.able(policy.role_numbers):
        yield _error(where, "`add` needs a role that an agent may join in: one that is no person's and not secret")


def _of_role(where: str, name: str, roles: Mapping[str, int]) -> Iterator[PolicyFinding]:
    if name not in roles:
        yield _error(where, f"no role is called {name!r}; there are {listed(roles)}{nearest(name, roles)}")


def _of_cast(node: Node, roles: Mapping[str, int]) -> Iterator[PolicyFinding]:
    where = _at(node)
    for name, count in Counter(node.roles).items():
        yield from _of_role(where, name, roles)
        if count > 1:
            yield _error(where, f"the role {name!r} is named twice")
    for name, count in Counter(node.writes).items():
        if count > 1:
            yield _error(where, f"writes {name!r} twice")
    if node.opens is not None:
        yield from _of_role(where, node.opens.role, roles)
        if node.opens.role in roles and node.opens.role not in node.roles:
            yield _error(where, f"{node.opens.role} opens it and is not in it")


def _of_inviting(policy: Policy, node: Node) -> Iterator[PolicyFinding]:
    if not node.invites:
        return
    if node.turns.mode == "together":
        yield _error(_at(node), "`invites` needs one speaker at a time, and here all speak side by side")
    if not policy.able(name for name in node.roles if name in policy.role_numbers):
        yield _error(_at(node), "`invites` needs a role that an agent may join in: one that is no person's and not secret")
    if any(policy.hearers(policy.node_numbers[node.name], (policy.role_numbers[name],)) is not None for name in node.roles):
        yield _error(_at(node), "`invites` tells all who joins and who has invited it, and not all hear who speaks here")


def _of_hearing(policy: Policy, node: Node, roles: Mapping[str, int]) -> Iterator[PolicyFinding]:
    """Say what is wrong with who hears a node, and what would tell everybody who holds a secret role."""
    where, heard_by = _at(node), node.heard_by
    if heard_by == "leader" and policy.leader is None:
        yield _error(where, "heard_by = 'leader' needs `leader`, the role that hears all others")
    of_role = heard_by if isinstance(heard_by, Mapping) else {}
    for name in of_role:
        yield from _of_role(where, name, roles)
        if name in roles and name not in node.roles:
            yield _error(where, f"heard_by says who hears {name}, which does not speak here")
    named = [one for names in of_role.values() for one in names] if of_role else heard_by if isinstance(heard_by, tuple) else ()
    for name in dict.fromkeys(one for one in named if one != "all"):
        yield from _of_role(where, name, roles)
    if heard_by is not None and not isinstance(heard_by, str) and not heard_by:
        yield _error(where, "heard_by is empty: leave it out, or say who hears what is said here")
    knowing = {role.name for role in policy.roles if role.hears_all}
    for one in node.form:
        secret = one.role is not None and one.role in roles and policy.roles[roles[one.role]].secret
        if secret and not {*node.roles} <= {*knowing, one.role}:
            yield _error(where, f"the field {one.name!r} would tell who holds {one.role}, which is secret: let it be a `member`")


def _of_form(node: Node, roles: Mapping[str, int]) -> Iterator[PolicyFinding]:
    for one in node.form:
        if one.role is not None and one.role not in roles:
            meant = nearest(one.role, [*roles, "member", "number", "text", "yes/no"])
            there = f"it may be {SHORT_FORMS}, and there are {listed(roles)}{meant}"
            yield _error(_at(node), f"the field {one.name!r} is {one.role!r}, which is no role; {there}")


def _of_feedback(node: Node, roles: Mapping[str, int]) -> Iterator[PolicyFinding]:
    """Say what is wrong with the guards and the review of a node."""
    where, lacks = _at(node), {"longest": "most", "without": "words"}
    if (words := sum(len(guard.words) for guard in node.guards)) > MOST_GUARDED_WORDS:
        yield _error(where, f"its guards have {words} words that must not be said, and {MOST_GUARDED_WORDS} are the most")
    for guard in node.guards:
        needed = lacks.get(guard.kind)
        for name, given in (("most", guard.most is not None), ("words", bool(guard.words))):
            if given and name != needed:
                yield _error(where, f"the guard {guard.kind!r} takes no `{name}`")
            elif name == needed and not given:
                yield _error(where, f"the guard {guard.kind!r} needs `{name}`")
        if node.opens is not None and node.opens.say and (why := guard.objection(node.opens.say)):
            yield _error(where, f"what {node.opens.role} opens it with cannot be said here by its own guards: {why}")
    if node.review is None:
        return
    yield from _of_role(where, node.review.by, roles)
    if node.turns.mode == "together":
        yield _error(where, "`review` needs one speaker at a time, and here all speak side by side")
    if {*node.roles} == {node.review.by}:
        yield _error(where, f"only {node.review.by} speaks here, whose own words are not reviewed: leave `review` out")


def _of_asking(node: Node) -> Iterator[PolicyFinding]:
    if node.asks and node.turns.mode == "together":
        yield _error(_at(node), "`asks` needs one speaker at a time, and here all speak side by side")
    if node.asks and node.review is not None:
        yield _error(_at(node), "`asks` lets words out of the group that `review` has not passed: ask in a node of its own")


def _of_tasks(node: Node) -> Iterator[PolicyFinding]:
    if node.tasks and node.turns.mode == "together":
        yield _error(_at(node), "`tasks` needs one speaker at a time; give them out in the node before")
    if node.tasks and node.review is not None:
        yield _error(_at(node), "`tasks` gives out words that `review` has not passed: give them out in a node of its own")


def _of_exits(node: Node, roles: Mapping[str, int], nodes: Mapping[str, int]) -> Iterator[PolicyFinding]:
    where = _at(node)
    for number, way in enumerate(node.exits, 1):
        if way.to != END and way.to not in nodes:
            yield _error(where, f"there is no node {way.to!r} to go to{nearest(way.to, [*nodes, END])}")
        for name in filter(None, (way.judge, *((way.when.of, way.when.left) if way.when else ()))):
            yield from _of_role(where, name, roles)
        for what in _of_exit(node, way):
            yield _error(where, f"{called(node.exits, number)} {what}")
    judges = list(dict.fromkeys(way.judge for way in node.exits if way.judge is not None))
    if len(judges) > 1:
        yield _error(where, f"several roles judge it, {listed(judges)}: let one of them do so")


def called(exits: Sequence[Exit], number: int) -> str:
    """Name an exit: by where it leads, and by its number if several lead there."""
    to = exits[number - 1].to
    return f"the exit to {to}" if sum(way.to == to for way in exits) == 1 else f"exit {number}, to {to},"


def _of_exit(node: Node, way: Exit) -> Iterator[str]:
    """Say what is wrong with an exit, as the end of a sentence that names it."""
    if way.by == "speaker" and node.turns.mode == "together":
        yield "is chosen by a speaker, and where all speak side by side nobody chooses: let a rule or a role take it"
    if way.judge is not None and way.to == STAY:
        yield f"cannot be chosen by {way.judge}, to whom {STAY!r} is to go on here: give that node another name"
    if way.when is not None:
        yield from _of_condition(node, way.when)
    if way.remove is not None:
        named = next((one for one in node.form if one.name == way.remove.field), None)
        if named is None:
            meant = nearest(way.remove.field, _names(node))
            yield f"removes whom the field {way.remove.field!r} names, which its form lacks{meant}"
        elif named.kind != "member":
            yield f"removes whom the field {named.name!r} names, which names no member"


def _of_condition(node: Node, when: Condition) -> Iterator[str]:
    given = when.model_dump(exclude_none=True)
    if not given:
        yield "has an empty `when`; leave it out, or say when"
    if (when.left is None) != (when.at_most is None):
        yield "says `left` or `at_most` alone: which role, and how many of it at most"
    if when.of is not None and when.of not in node.roles and when.field:
        yield f"asks what {when.of} has filled in, which is not in it"
    if when.field is None:
        lone = [name for name in ("by", "of", "equals", "like") if name in given]
        if lone:
            yield f"has `{lone[0]}` without the `field` that it tests"
        return
    field = next((one for one in node.form if one.name == when.field), None)
    if field is None:
        yield f"tests the field {when.field!r}, which its form lacks{nearest(when.field, _names(node))}"
        return
    if when.like is not None and (when.equals is not None or field.kind not in ("text", "option")):
        yield f"has `like`, which goes with texts and options, and not with `equals`: {field.name!r} is of kind {field.kind}"
    elif when.equals is not None and not _fits(field, when.equals):
        yield f"waits for {field.name!r} to be {_shown(when.equals)}, which it never is{_meant(field, when.equals)}"


def _fits(field: FormField, value: object) -> bool:
    """Whether a field can hold a value; of members any name may be one."""
    match field.kind:
        case "yes_no":
            return isinstance(value, bool)
        case "number":
            if not isinstance(value, int) or isinstance(value, bool):
                return False
            return (field.lowest is None or value >= field.lowest) and (field.highest is None or value <= field.highest)
        case "option":
            return value in field.options
        case _:
            return isinstance(value, str)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _meant(field: FormField, value: object) -> str:
    """Say what a field can be instead, as the end of a sentence."""
    match field.kind:
        case "yes_no":
            right = {"yes": "`true`", "true": "`true`", "no": "`false`", "false": "`false`"}
            return f"; write {right.get(str(value).lower(), '`true` or `false`')}"
        case "option":
            return nearest(value, field.options) if isinstance(value, str) else ""
        case "number" if isinstance(value, str):
            return "; write a number, without quotes"
        case _:
            return ""


def _names(node: Node) -> list[str]:
    return [one.name for one in node.form]


def _of_turns(node: Node, roles: Iterable[str]) -> Iterator[PolicyFinding]:
    where, turns = _at(node), node.turns
    if turns.mode == "hub" and turns.by is None:
        yield _error(where, "turns = 'hub' needs `by`, the role that speaks after everybody else")
    if turns.mode == "ask" and turns.by is None:
        yield _error(where, "turns = 'ask' needs `by`, the role that chooses")
    if turns.mode not in ("hub", "ask") and turns.by is not None:
        yield _error(where, f"turns = {turns.mode!r} takes no `by`")
    for name in filter(None, (turns.by,)):
        if name not in roles:
            yield _error(where, f"no role is called {name!r}; there are {listed(roles)}{nearest(name, roles)}")
        elif name not in node.roles and not (turns.mode == "ask" and name == turns.by):
            yield _error(where, f"its turns name {name}, which is not in it")


def _of_ways(policy: Policy) -> Iterator[PolicyFinding]:
    first = policy.nodes[0].name
    reached, ending = _reachable(policy, first), _reaching_end(policy)
    for node in policy.nodes:
        if node.name not in reached:
            yield _error(_at(node), "nothing leads to it")
        elif node.name not in ending:
            yield _error(_at(node), "no way leads from it to the end")
        elif not _ends_surely(node) and not _is_ended_by(node):
            yield _error(_at(node), f"may never end: {_how_to_end(node)}")
        if policy.ends == "last" and (policy.heard_by != "all" or node.heard_by not in (None, "all", ("all",))):
            ahead = next((way.to for way in node.exits if way.to != END), None)
            last = "" if ahead is None else f", which is the last one also if nobody is present in {ahead}"
            yield _error(
                _at(node),
                f"ends = 'last' makes the last message the result{last}, and not all hear those here: "
                "let all hear them, or leave `ends` out",
            )
        if policy.ends == "last" and any(way.judge is not None and way.to == END for way in node.exits):
            yield _error(
                _at(node), f"ends = 'last', but {node.judge} may end it, after the last message: let somebody speak behind it"
            )


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
    """Name the nodes from which a way leads to the end, or that end it themselves once all that they lead to is used up."""
    bounded = {node.name for node in policy.nodes if node.visits is not None}
    ending = {END} | {node.name for node in policy.nodes if bounded.issuperset(_targets(node))}
    leading = {node.name: frozenset(_targets(node)) for node in policy.nodes if node.name not in ending}
    while more := {name for name, targets in leading.items() if name not in ending and not ending.isdisjoint(targets)}:
        ending |= more
    return ending


def _ends_surely(node: Node) -> bool:
    """Whether its turns come to an end however its members choose: they are counted, or everybody has one in time."""
    everybody_speaks = node.turns.mode in ("order", "random", "together")
    by_rules = [way.when for way in node.exits if way.by == "rule" and way.when is not None]
    counted = [when for when in by_rules if when.visits is None and when.field is None and when.left is None]
    return (
        node.max is not None
        or any(everybody_speaks or when.rounds is None for when in counted)
        or (everybody_speaks and all(way.is_bare for way in node.exits))
    )


def _how_to_end(node: Node) -> str:
    """Say what would bring the turns of a node to an end; who has written a way out without `when` believes that it does."""
    bare = next((way.to for way in node.exits if way.is_bare), None)
    if bare is None or all(way.is_bare for way in node.exits):
        return "give it `max`"
    if node.turns.mode == "together":
        return f"the exit to {bare} is taken only behind `max`; give it `when = {{ rounds = 1 }}`"
    return f"the exit to {bare} is taken only behind `max`; give the node `max`, or that exit `when = {{ rounds = 1 }}`"


def _asks_twice(node: Node) -> bool:
    """Whether some may be asked anew once all have spoken side by side: as many as `max` lacks, if fewer are present."""
    if node.turns.mode != "together" or node.max in (None, 1):
        return False
    return not any(way.by == "rule" and way.when and (way.when.rounds or way.when.turns) for way in node.exits)


def _is_ended_by(node: Node) -> str | None:
    """Say who alone ends a node, if its members choose to."""
    if any(way.by == "speaker" for way in node.exits):
        return "its speakers end it"
    return node.judge and f"its judge, {node.judge}, ends it"


def _of_size(policy: Policy) -> Iterator[PolicyFinding]:
    size = len(encode_value(policy.model_dump(mode="json")))
    if size > MAX_POLICY_BYTES:
        yield _error("", f"the policy has {size:,} bytes, and {MAX_POLICY_BYTES:,} are the most: shorten its prompts")


NEVER_A_TURN = "nobody who holds it ever has a turn"


def role_at(name: str) -> str:
    """Say where something is that is wrong with a role."""
    return f"role {name}"


def roles_with_turns(policy: Policy) -> frozenset[str]:
    """Return the roles whose holders speak, decide, review, watch or conclude, or are named in a form."""
    speaking = {name for node in policy.nodes for name in node.roles}
    asked = {name for node in policy.nodes for name in _asked_in(node)}
    named = {one.role for node in policy.nodes for one in node.form} | {node.review.by for node in policy.nodes if node.review}
    watching = {watcher.role for watcher in policy.watchers}
    return frozenset(one for one in (*speaking, *asked, *named, *watching, policy.leader) if one)


def _warnings(policy: Policy) -> Iterator[PolicyFinding]:
    turned = roles_with_turns(policy)
    gives_tasks = any(node.tasks for node in policy.nodes)  # to any members, who may be there to do them
    for role in policy.roles:
        is_told = role.secret and role.prompt  # it may be there for its words
        if role.name not in turned and not is_told and not gives_tasks:
            yield PolicyFinding("warning", role_at(role.name), NEVER_A_TURN)
    yield from _warnings_of_hearing(policy)
    yield from shown_by(policy)
    for node in policy.nodes:
        for what in _of_idle_exits(policy, node):
            yield PolicyFinding("warning", _at(node), what)
        if not _ends_surely(node):
            idle = next((f": the exit to {way.to} waits for `max`, which it lacks" for way in node.exits if way.is_bare), "")
            yield PolicyFinding("warning", _at(node), f"only {_is_ended_by(node)}, besides max_turns{idle}")
        if _asks_twice(node):
            why = "`max` counts what each says, so that some speak twice when fewer are present"
            yield PolicyFinding("warning", _at(node), f"{why}: let an exit wait for `rounds`")
    if loop := _unbounded_loop(policy):
        yield PolicyFinding("warning", f"nodes {listed(loop)}", "a loop bounded by max_turns only; give one of them `visits`")


def _warnings_of_hearing(policy: Policy) -> Iterator[PolicyFinding]:
    """Say what members may hear, or not hear, against what was meant."""
    numbers = policy.role_numbers
    knowing = [role.name for role in policy.roles if role.hears_all]
    for number, node in enumerate(policy.nodes):
        hearers = policy.hearers(number, ())
        for name in _asked_in(node):
            if hearers is not None and numbers[name] not in hearers and name not in knowing:
                yield PolicyFinding("warning", _at(node), f"{name} decides here and hears nothing of it: add it to heard_by")
    for number, watcher in enumerate(policy.watchers, 1):
        if policy.hides and watcher.role not in knowing:
            yield PolicyFinding("warning", f"watcher {number}", f"{watcher.role} may not hear all that it watches: set hears_all")
    leader = policy.leader or policy.roles[0].name
    heard = [policy.hearers(number, ()) for number in range(len(policy.nodes))]
    hears = any(
        leader in node.roles or roles is None or numbers[leader] in roles for node, roles in zip(policy.nodes, heard, strict=True)
    )
    if policy.ends == "leader" and leader not in knowing and not hears:
        what = "states the conclusion and hears nothing of what is said: set hears_all, or add it to heard_by"
        yield PolicyFinding("warning", f"role {leader}", what)
    if policy.secrets and leader not in knowing:
        yield PolicyFinding("warning", f"role {leader}", "opens the group by this file, and knows the secret roles: set hears_all")


def shown_by(policy: Policy) -> Iterator[PolicyFinding]:
    """Say how the policy itself shows to others who holds a secret role; what it does not show they cannot find out."""
    if not policy.secrets:
        return
    secret = {role.name for role in policy.roles if role.secret}
    opening = policy.leader or policy.roles[0].name
    if opening in secret:
        yield PolicyFinding("warning", f"role {opening}", "is secret, and all see who opens the group and concludes it")
    for role in (policy.roles[number] for number in sorted(policy.secrets)):
        if role.human:
            yield PolicyFinding("warning", f"role {role.name}", "is secret, and all see who is a person")
        if role.at_most is not None:
            yield PolicyFinding("warning", f"role {role.name}", "is secret, and shown by whose turns end (`at_most`)")
    for number, watcher in enumerate(policy.watchers, 1):
        for what in _shown_by_watching(watcher, secret):
            yield PolicyFinding("warning", f"watcher {number}", what)
    for number, node in enumerate(policy.nodes):
        for what in (*_shown_to_all(policy, number, node), *_shown_to_some(policy, node, secret)):
            yield PolicyFinding("warning", _at(node), what)


def _shown_by_watching(watcher: Watcher, secret: Collection[str]) -> Iterator[str]:
    if watcher.role in secret and "hint" in watcher.may:
        yield f"{watcher.role} is secret, and whom it hints something sees who does"
    if watcher.by in secret:
        yield f"{watcher.by} is secret, and shown by when the watcher is asked: leave `by` out"


def _shown_to_all(policy: Policy, number: int, node: Node) -> Iterator[str]:
    """Say which secret roles show by speaking where others hear it, alone of their kind, or otherwise than who speaks beside them.

    Where others do not hear it, all see how many turns it takes, and how long.
    """
    numbers = policy.role_numbers
    secret = [name for name in node.roles if numbers[name] in policy.secrets]
    hearers = {name: policy.hearers(number, (numbers[name],)) for name in secret}
    others = [(number, role.name) for number, role in enumerate(policy.roles) if not role.secret and not role.hears_all]
    hearing = {
        name: "all" if known is None else listed(other for number, other in others if number in known)
        for name, known in hearers.items()
    }
    heard = [name for name in secret if hearing[name]]
    who = listed(list(dict.fromkeys(hearing[name] for name in heard)))
    are = "is secret" if len(secret) == 1 else "are secret"
    if heard and (len(secret) < 2 or len(secret) < len(policy.secrets)):
        yield f"{listed(heard)} {'is' if len(heard) == 1 else 'are'} secret, and {who} hear who speaks here"
        return
    if heard and len(heard) < len(secret):
        yield f"{listed(secret)} {are}, and {who} hear who speaks as {listed(heard)}"
    if not secret or len(node.roles) == 1:
        return
    for what, names in _named_in(node):
        if shown := [name for name in secret if name in names]:
            yield f"{listed(shown)} {'is' if len(shown) == 1 else 'are'} secret, and it shows {what}"
    roles = [policy.roles[numbers[name]] for name in node.roles]
    for field, values in (("timeout", {role.timeout for role in roles}), ("at_most", {role.at_most for role in roles})):
        if len(values) > 1:
            yield f"{listed(secret)} {are}, and shown by who has another `{field}`: give all roles here the same"


def _named_in(node: Node) -> Iterator[tuple[str, Collection[str | None]]]:
    """Tell what in a node is of some of its roles and not of others, and of which."""
    turns = node.turns
    yield "who opens it", () if node.opens is None else (node.opens.role,)
    yield "who its hub is", (turns.by,) if turns.mode == "hub" else ()
    yield "whose fields lead on (`of`)", [way.when.of for way in node.exits if way.when is not None]


def _shown_to_some(policy: Policy, node: Node, secret: Collection[str]) -> Iterator[str]:
    """Say which secret roles show to who has to do with them, though nobody else hears them."""
    speaking, review = [name for name in node.roles if name in secret], node.review
    are = f"{listed(speaking)} {'is' if len(speaking) == 1 else 'are'} secret"
    if review is not None and review.by in secret:
        yield f"{review.by} is secret, and who is reviewed sees by whom"
    if not speaking:
        if node.tasks and (hearing := _hearing_in_secret(policy, node)):
            those = f"{listed(hearing)} {'is' if len(hearing) == 1 else 'are'} secret"
            yield f"{those}, and who gives out tasks that use others (`uses`) sees by refusals who was told of those"
        return
    if node.tasks:
        yield f"{are}, and who is given a task sees by whom"
    asked = [node.turns.by if node.turns.mode == "ask" else None, None if review is None else review.by]
    for name in dict.fromkeys(filter(None, asked)):
        if name not in speaking and not policy.roles[policy.role_numbers[name]].hears_all:
            yield f"{are}, and {name}, which is asked here, sees who speaks"


def _hearing_in_secret(policy: Policy, node: Node) -> Sequence[str]:
    """Return the secret roles that hear a node in which somebody speaks that does not know who holds them."""
    number, found = policy.node_numbers[node.name], set[int]()
    for role in (policy.role_numbers[name] for name in node.roles):
        hearers = policy.hearers(number, (role,))
        if hearers is not None and not policy.roles[role].hears_all:
            found |= (hearers & policy.secrets) - {role}
    return [policy.roles[role].name for role in sorted(found)]


def _of_idle_exits(policy: Policy, node: Node) -> Iterator[str]:
    """Say which exits are never taken, or otherwise than they read."""
    taken = None
    is_one_round = all(way.is_bare for way in node.exits)
    for number, way in enumerate(node.exits, 1):
        if way.is_bare and node.max is None and not is_one_round and _ends_surely(node):
            yield f"{called(node.exits, number)} waits for `max`, which the node lacks: give it `max`, or leave the exit out"
        if taken is not None and way.is_bare:
            yield f"{called(node.exits, number)} is never taken: {called(node.exits, taken)} before it waits for nothing either"
        if taken is None and way.is_bare and (way.to == END or policy.node(way.to).visits is None):
            taken = number
        if way.when is not None and (why := _why_never(node, way.when)):
            yield f"{called(node.exits, number)} never has its `when` hold: {why}"
    first = node.exits[0] if node.exits else None
    if node.max is None or first is None or first.when is None or first.to == END or any(way.is_bare for way in node.exits):
        return
    if not (first.by == "rule" and _holds_in_time(first.when, node.max)):
        yield f"at `max` it goes to {first.to} also if its `when` does not hold: give it a bare exit"


def _why_never(node: Node, when: Condition) -> str:
    """Say why a condition never holds; empty if it may."""
    if node.max is not None:
        for name, turns in (("turns", when.turns), ("rounds", when.rounds)):
            if turns is not None and turns > node.max:
                return f"{name} = {turns}, and max = {node.max}"
    if when.visits is not None and node.visits is not None and when.visits > node.visits:
        return f"visits = {when.visits}, and the node is entered {node.visits} times at most"
    return ""


def _holds_in_time(when: Condition, most: int) -> bool:
    """Whether a condition holds by then, since it only counts turns."""
    return when.turns is not None and when.turns <= most and when == Condition(turns=when.turns)


def _asked_in(node: Node) -> Iterator[str]:
    """Name the roles that decide in a node."""
    if node.judge is not None:
        yield node.judge
    if node.turns.mode == "ask" and node.turns.by is not None:
        yield node.turns.by


def _unbounded_loop(policy: Policy) -> Sequence[str]:
    free = {node.name: set(_targets(node)) for node in policy.nodes if node.visits is None}
    try:
        TopologicalSorter({name: targets & free.keys() for name, targets in free.items()}).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]), key=list(free).index)
    return ()
