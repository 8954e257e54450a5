"""Policies: who speaks when in a group, and what leads on. A policy is data in the charter, and never changes.

A group under a policy walks through nodes. In each of them some roles speak, in an order that the node names, until one of its
exits leads on. The machine asks this data and nothing else, so that a log refolds to the same states.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property, partial, reduce
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, StringConstraints, model_validator

from ioa.protocol.codec import encode_value
from ioa.protocol.ids import AgentId, AgentIdField
from ioa.protocol.model import FailFast

MAX_ROLES = 64
MAX_NODES = 128
MAX_EXITS = 32
MAX_PROMPT_CHARS = 8_000
MAX_FIELDS = 16
MAX_WRITES = 16
"""How many things a node may write."""
MAX_FIELD_CHARS = 200
"""How long a text may be that a form is filled in with."""
END = "end"
"""Where an exit leads that ends the discussion; no node is called so."""
STAY = "stay"
"""What a judge chooses that lets the node go on."""

NOTHING = "nothing"
"""What a watcher chooses that lets the group go on as it is."""

NAME = r"^[a-z][a-z0-9_-]{0,31}$"
"""What a role, a node and a field may be called."""

Name = Annotated[str, Field(pattern=NAME)]
Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Whole = Annotated[int, Field(strict=True, ge=1, le=10_000)]


def _no_text(written: object) -> object:
    """Refuse a duration that is written as a text: numbers are seconds."""
    if isinstance(written, str):
        raise ValueError("must be a number of seconds")
    return written


def _unless(default: object) -> Callable[[object], bool]:
    """Leave a field out that is as it was before there was such a field, so that older policies keep their digest."""
    return partial(operator.eq, default)


def _is_none(value: object) -> bool:
    return value is None


Seconds = Annotated[timedelta, BeforeValidator(_no_text), Field(gt=timedelta(0), le=timedelta(days=30))]


class PolicyPart(FailFast):
    """A part of a policy. What is not known is an error: half a policy is another policy."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_timedelta="float")


MAX_RECALLED = 20


class Memory(PolicyPart):
    """What a member is shown, in its turns, of that which it has heard. What is left out may be told in short.

    Attributes:
        window: The last so many things that were said, its own among them.
        last: The last so many things that holders of a role have said, besides; without a window these alone.
        summary: What is left out is summed up by the member's own model, whenever that is so many things more.
        relevant: So many passages that fit what was said last, out of what is left out here, and of what the member was shown in
            other groups of the same user, for goals with the same labels, whose policies let it recall; of each the last 4 MB.
    """

    window: Whole | None = None
    last: Annotated[Mapping[Name, Whole], Field(max_length=MAX_ROLES)] = Field(default_factory=dict)
    summary: Whole | None = None
    relevant: Annotated[int, Field(strict=True, ge=1, le=MAX_RECALLED)] | None = None

    @model_validator(mode="after")
    def _remembers_something(self) -> Memory:
        if not (self.window or self.last or self.relevant):
            raise ValueError("says nothing of what is shown: give `window`, `last` or `relevant`")
        if self.summary and not (self.window or self.last):
            raise ValueError("`summary` sums up what `window` or `last` leave out, and neither is given")
        return self


class Role(PolicyPart):
    """A part that members play.

    Attributes:
        name: What it is called, anything but `all`.
        prompt: What its holders are told, besides their own instructions.
        at_most: How many turns a holder has in the whole group.
        timeout: How long a holder has the floor; None: as its card says, or its group.
        secret: Whether its holders are known only to each other, and to members that hear all; so is its prompt.
        hears_all: Whether its holders hear all that is said in the group, and see all that comes of it.
        memory: What its holders are shown of what they have heard; None: all of it.
        human: Whether a person holds it: no model is asked, and it is waited for and never lost.
    """

    name: Name
    prompt: Prompt = ""
    at_most: Whole | None = None
    timeout: Seconds | None = None
    secret: Annotated[StrictBool, Field(exclude_if=operator.not_)] = False
    hears_all: Annotated[StrictBool, Field(exclude_if=operator.not_)] = False
    memory: Annotated[Memory | None, Field(exclude_if=_is_none)] = None
    human: Annotated[StrictBool, Field(exclude_if=operator.not_)] = False


Hearing = Literal["all", "node", "leader"]
"""Who hears what is said: all members, those who speak in the node, or who leads, whom all hear."""

Mode = Literal["order", "nominate", "random", "hub", "together", "ask"]
Peers = Literal["at_once", "after", "never"]


class Turns(PolicyPart):
    """Who speaks next in a node.

    Attributes:
        mode: How the next speaker is found.
        by: The hub, which speaks after everybody else, or who is asked for the next speaker: a role.
        repeat: Whether one member may speak twice in a row.
        tries: How many decisions of who is asked here may be refused; then the default stands.
        peers: When who speaks side by side reads what the others say: at once; after they have spoken themselves, or have been
            silent; or never: of all who speak in the node only who has asked them reads it.
    """

    mode: Mode = "order"
    by: Name | None = None
    repeat: StrictBool = False
    tries: Annotated[int, Field(strict=True, ge=1, le=5, exclude_if=_unless(2))] = 2
    peers: Annotated[Peers, Field(exclude_if=_unless("after"))] = "after"


FieldKind = Literal["text", "number", "yes_no", "member", "option"]
Bound = Annotated[StrictInt, Field(ge=-(2**53), le=2**53)]
FieldValue = StrictBool | Bound | Annotated[StrictStr, Field(max_length=MAX_FIELD_CHARS)]
"""What a field is filled in with: of a member its id, of an option its text."""


Option = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
"""An option of a field. Answers are stripped, so options are stripped too."""


class FormField(PolicyPart):
    """What a message says besides its words, so that nobody has to read them to know.

    Attributes:
        name: What it is called.
        kind: What it holds: a text of up to 200 characters, a whole number, yes or no, a member, or one of `options`.
        role: Of which role the member is; None is any member.
        lowest: The least number; None is no bound.
        highest: The greatest number; None is no bound.
        options: What is chosen from.
        required: Whether each message fills it in.
    """

    name: Name
    kind: FieldKind = "text"
    role: Name | None = None
    lowest: Bound | None = None
    highest: Bound | None = None
    options: Annotated[tuple[Option, ...], Field(max_length=16)] = ()
    required: StrictBool = True


Form = Annotated[tuple[FormField, ...], Field(max_length=MAX_FIELDS)]


class Opening(PolicyPart):
    """Who speaks first in a node.

    Attributes:
        role: Who does; it is one of the node's.
        say: In which words; without them the role finds its own.
    """

    role: Name
    say: Prompt = ""


class Condition(PolicyPart):
    """What an exit waits for. All that is given must hold.

    Attributes:
        turns: The node has had at least so many turns in this visit.
        rounds: Everybody who is present has had at least so many turns in this visit.
        visits: The node has been entered at least so many times.
        field: A field of the node's form holds what `equals` or `like` say, or anything if neither does.
        by: Who has filled it in so, in this visit: the last one who has filled it in, any member, all who are present, or more than
            half of the cast.
        of: Only holders of this role count.
        equals: What it holds exactly.
        like: What it looks like: `*` is anything, `?` any character, `#` a digit; case does not count.
        left: A role of which no more than `at_most` holders are left; removed ones are not, lost ones are.
        at_most: How many are left at most.
    """

    turns: Whole | None = None
    rounds: Whole | None = None
    visits: Whole | None = None
    field: Annotated[Name | None, Field(exclude_if=_is_none)] = None
    by: Annotated[Literal["last", "any", "all", "most"], Field(exclude_if=_unless("last"))] = "last"
    of: Annotated[Name | None, Field(exclude_if=_is_none)] = None
    equals: Annotated[FieldValue | None, Field(exclude_if=_is_none)] = None
    like: Annotated[str | None, Field(min_length=1, max_length=MAX_FIELD_CHARS, exclude_if=_is_none)] = None
    left: Annotated[Name | None, Field(exclude_if=_is_none)] = None
    at_most: Annotated[int | None, Field(strict=True, ge=0, le=MAX_ROLES, exclude_if=_is_none)] = None


class Removal(PolicyPart):
    """Who is taken out of the group.

    Attributes:
        field: A field of the node's form that names a member.
        by: Whether who was named most often goes, be it by few, or whom the last one has named.
        ties: Who goes if several were named as often: nobody, or the first that was named.
    """

    field: Name
    by: Literal["most", "last"] = "most"
    ties: Literal["none", "first"] = "none"


class Exit(PolicyPart):
    """A way out of a node.

    Attributes:
        to: The node that it leads to, or `end`.
        when: What it waits for; a rule without a condition is taken when the turns of the node are over.
        by: Whether a `rule` takes it, or the `speaker` chooses it, or holders of a role are asked, the judge.
        remove: Who is out of the group when it is taken.
    """

    to: Name
    when: Condition | None = None
    by: Name = "rule"
    remove: Annotated[Removal | None, Field(exclude_if=_is_none)] = None

    @property
    def judge(self) -> str | None:
        """The role that is asked whether it is taken."""
        return None if self.by in ("rule", "speaker") else self.by

    @property
    def is_bare(self) -> bool:
        """Whether it waits for nothing but the end of the node's turns."""
        return self.by == "rule" and self.when is None


class Guard(PolicyPart):
    """What a message must be like to be taken. Else it is refused, and said anew by who has said it.

    Attributes:
        kind: It must say something, be no longer than `most`, or do without the `words`.
        most: How many characters it has at most.
        words: What it must not hold, also within other words; case does not count. Texts of its form, and what it writes, are held
            to it too. All guards of a node may have 64 of them together.
    """

    kind: Literal["not_empty", "longest", "without"]
    most: Annotated[int | None, Field(strict=True, ge=1, le=200_000, exclude_if=_is_none)] = None
    words: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=64)] = ()

    def objection(self, content: str, texts: Iterable[str] = ()) -> str:
        """Say what is wrong with words, and with the texts that go with them; empty if they pass."""
        match self.kind:
            case "not_empty":
                return "" if content.strip() else "it says nothing"
            case "longest":
                too_long = self.most is not None and len(content) > self.most
                return f"it has {len(content):,} characters, and {self.most:,} are the most" if too_long else ""
            case "without":
                said = [one.casefold() for one in (content, *texts)]
                held = [word for word in self.words if any(word.casefold() in one for one in said)]
                return f"it must do without {', '.join(map(repr, held))}" if held else ""


class Review(PolicyPart):
    """Who passes a message before others hear it.

    Attributes:
        by: The role that does, whose own messages are not reviewed.
        tries: How many drafts of one turn may be rejected.
        then: What follows then, or if nobody is there to review: the turn is over without a word, the last draft is passed, or the
            group ends, as `refused`.
    """

    by: Name
    tries: Annotated[int, Field(strict=True, ge=1, le=5)] = 3
    then: Literal["drop", "pass", "end"] = "drop"


class Node(PolicyPart):
    """A stretch of the discussion.

    Attributes:
        name: What it is called, anything but `end`.
        roles: Who speaks here.
        turns: Who speaks next.
        opens: Who speaks first.
        prompt: What they are told here.
        max: How many turns a visit has; None: as its exits say, and a round if none of them has a condition.
        exits: The ways out, in the order in which they are asked.
        visits: How often the node may be entered; None is no bound. Once they are used up, exits that lead to it are closed.
        form: What each message here fills in.
        asked: Whether the judge is asked after each turn, or after each round: when the count of the node's turns is a multiple of
            how many are present then.
        heard_by: Who hears what is said here, besides its speaker and who hears all: roles, or `all`; or for roles that speak here
            those that hear them. None: as the policy says.
        guards: What each message here must be like.
        review: Who passes each message here before others hear it.
        asks: Whether who has the floor may ask out of the group, and has it again with the answer.
        writes: What messages here may write on the board, a new version each time; who hears such a message reads it there.
        invites: Whether who has the floor here may have others join the group, in one of its roles that hears no more than
            that one, and keep the floor.
        tasks: Whether who has the floor here may give out tasks to any members, or wait for tasks, and has the floor again then.
    """

    name: Name
    roles: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_ROLES)]
    turns: Turns = Turns()
    opens: Opening | None = None
    prompt: Prompt = ""
    max: Whole | None = None
    exits: Annotated[tuple[Exit, ...], Field(max_length=MAX_EXITS)] = ()
    visits: Whole | None = None
    form: Annotated[Form, Field(exclude_if=operator.not_)] = ()
    asked: Annotated[Literal["round", "turn"], Field(exclude_if=_unless("round"))] = "round"
    heard_by: Annotated[Hearing | tuple[Name, ...] | Mapping[Name, tuple[Name, ...]] | None, Field(exclude_if=_is_none)] = None
    guards: Annotated[tuple[Guard, ...], Field(max_length=8, exclude_if=operator.not_)] = ()
    review: Annotated[Review | None, Field(exclude_if=_is_none)] = None
    asks: Annotated[StrictBool, Field(exclude_if=operator.not_)] = False
    writes: Annotated[tuple[Name, ...], Field(max_length=MAX_WRITES, exclude_if=operator.not_)] = ()
    invites: Annotated[StrictBool, Field(exclude_if=operator.not_)] = False
    tasks: Annotated[StrictBool, Field(exclude_if=operator.not_)] = False

    @property
    def sits_apart(self) -> bool:
        """Whether several may speak here side by side who do not read at once what the others say."""
        return self.turns.mode in ("together", "hub") and self.turns.peers != "at_once"

    @cached_property
    def judge(self) -> str | None:
        """The role that is asked which way to go."""
        return next((way.judge for way in self.exits if way.judge is not None), None)

    @cached_property
    def tested(self) -> tuple[FormField, ...]:
        """The fields of the form that an exit depends on; others stay in the messages."""
        named = {way.when.field for way in self.exits if way.when is not None} | {
            way.remove.field for way in self.exits if way.remove
        }
        return tuple(one for one in self.form if one.name in named)


WatchVerb = Literal["remove", "add", "hint", "end", "go"]
"""What a watcher may do: take members out, have one join, tell some something, end the discussion, or begin a node anew."""


class Watcher(PolicyPart):
    """Who is asked after messages whether to step in, before anybody else speaks.

    Attributes:
        role: Whose first holder is asked.
        node: Where; None is in each node.
        by: After messages of holders of this role; None is of anybody.
        every: After each so many turns of the group. A member chooses them by passing: 1 for who guards against one.
        may: What it may choose besides nothing: `remove` or `hint` some members, `add` one, `end` the discussion, `go` back to a
            node.
        go: The nodes that it may begin anew, once they were entered. What was said since then is struck.
    """

    role: Name
    node: Name | None = None
    by: Name | None = None
    every: Whole = 1
    may: Annotated[tuple[WatchVerb, ...], Field(min_length=1, max_length=5)]
    go: Annotated[tuple[Name, ...], Field(max_length=MAX_NODES)] = ()


class Policy(PolicyPart):
    """How a group is led. The first node is entered first.

    Attributes:
        leader: The role that states the conclusion; None is the owner of the group.
        ends: Who says the result: the leader, in a conclusion, or whoever had the last turn, by it, which all hear then.
        seed: Of the random order.
        silent: What a silent turn does: it is skipped, or it ends the group.
        heard_by: Who hears what is said in nodes that do not say so themselves.
        watchers: Who is asked after messages whether to step in, in this order.
    """

    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=MAX_ROLES)]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MAX_NODES)]
    leader: Name | None = None
    ends: Literal["leader", "last"] = "leader"
    seed: Annotated[int, Field(strict=True, ge=0, le=2**53)] = 0
    silent: Literal["skip", "end"] = "skip"
    heard_by: Annotated[Hearing, Field(exclude_if=_unless("all"))] = "all"
    watchers: Annotated[tuple[Watcher, ...], Field(max_length=16, exclude_if=operator.not_)] = ()

    @cached_property
    def node_numbers(self) -> Mapping[str, int]:
        """The place of each node, by its name."""
        return MappingProxyType({node.name: number for number, node in enumerate(self.nodes)})

    @cached_property
    def role_numbers(self) -> Mapping[str, int]:
        """The place of each role, by its name."""
        return MappingProxyType({role.name: number for number, role in enumerate(self.roles)})

    @cached_property
    def speaking(self) -> tuple[tuple[int, ...], ...]:
        """For each node the numbers of the roles that speak in it, in its order."""
        numbers = self.role_numbers
        return tuple([tuple([numbers[name] for name in node.roles]) for node in self.nodes])

    @cached_property
    def checked(self) -> Mapping[str, frozenset[str]]:
        """For each role the others whose words it reviews, judges or watches, by name."""
        checked: dict[str, set[str]] = {role.name: set() for role in self.roles}
        for node in self.nodes:
            for by in (None if node.review is None else node.review.by, *(way.judge for way in node.exits)):
                if by is not None:
                    checked[by].update(node.roles)
        for watcher in self.watchers:
            nodes = [node for node in self.nodes if watcher.node in (None, node.name)]
            checked[watcher.role].update([name for node in nodes for name in node.roles if watcher.by in (None, name)])
        return MappingProxyType({name: frozenset(roles - {name}) for name, roles in checked.items()})

    @cached_property
    def counts_totals(self) -> bool:
        """Whether anything depends on how many turns a member has had in the whole group."""
        return any(role.at_most is not None for role in self.roles)

    @cached_property
    def times_floors(self) -> bool:
        """Whether a role says how long its holders have the floor."""
        return any(role.timeout is not None for role in self.roles)

    @cached_property
    def takes_in(self) -> bool:
        """Whether others may join the group on the way."""
        return any(node.invites for node in self.nodes) or any("add" in watcher.may for watcher in self.watchers)

    @cached_property
    def hides(self) -> bool:
        """Whether something is kept from members for good."""
        heard = [hearers for of_role in self._hearing for hearers in of_role.values()]
        never = any(node.sits_apart and node.turns.peers == "never" for node in self.nodes)
        hints = any("hint" in watcher.may for watcher in self.watchers)
        return never or hints or bool(self.secrets) or self.reviews or any(hearers is not None for hearers in heard)

    @cached_property
    def rewinds(self) -> bool:
        """Whether a node may be begun anew, and what was said since it was entered be struck."""
        return any(watcher.go for watcher in self.watchers)

    @cached_property
    def reviews(self) -> bool:
        """Whether drafts are kept from those that do not review them."""
        return any(node.review for node in self.nodes)

    @cached_property
    def is_scoped(self) -> bool:
        """Whether not all hear all at once."""
        return self.hides or any(node.sits_apart for node in self.nodes)

    def able(self, roles: Iterable[Name]) -> tuple[Name, ...]:
        """Return those of some roles in which an agent may join: all know who does, and no person holds them."""
        held = [self.roles[self.role_numbers[name]] for name in roles]
        return tuple([role.name for role in held if not role.human and not role.secret])

    def hearing_more(self, held: Iterable[int]) -> frozenset[int]:
        """Return the roles that hear something which a holder of some roles does not."""
        mine = bits_of(held)
        return frozenset(numbers_of(reduce(operator.or_, (one.roles for one in self._kept if not one.is_heard(mine)), 0)))

    @cached_property
    def _kept(self) -> frozenset[_Kept]:
        """Who hears what not all hear, wherever it is said: messages, what is said apart, drafts, and all else who hears all."""
        if not self.hides:
            return frozenset()
        numbers, always = self.role_numbers, bits_of(self.hearing_all)
        kept = {_Kept(always)}
        for number, node in enumerate(self.nodes):
            inside = bits_of(self.speaking[number])
            apart = node.sits_apart and node.turns.peers == "never"
            hub = bits_of([numbers[node.turns.by]]) if apart and node.turns.by is not None else 0
            for hearers in set(self._hearing[number].values()):
                heard = bits_of(range(len(self.roles)) if hearers is None else hearers) | always
                kept.add(_Kept(heard))
                if apart:
                    kept.add(_Kept(heard & ~inside | heard & hub | always, inside, hub | always))
            if node.review:
                kept.add(_Kept(bits_of([numbers[node.review.by]]) | always))
        return frozenset(kept)

    @cached_property
    def hearing_all(self) -> frozenset[int]:
        """The numbers of the roles that hear all."""
        return frozenset([number for number, role in enumerate(self.roles) if role.hears_all])

    @cached_property
    def secrets(self) -> frozenset[int]:
        """The numbers of the roles whose holders are secret."""
        return frozenset([number for number, role in enumerate(self.roles) if role.secret])

    @cached_property
    def _hearing(self) -> tuple[Mapping[int, frozenset[int] | None], ...]:
        """For each node, for each role that speaks in it: the roles that hear it, or None if all do."""
        return tuple([{self.role_numbers[role]: _hearers(self, node, role) for role in node.roles} for node in self.nodes])

    def hearers(self, node: int, held: Iterable[int]) -> frozenset[int] | None:
        """Return the roles that hear what a holder of some roles says in a node; None if all do.

        Who holds none of those that speak in the node, as far as is known, may hold any of them.
        """
        of_role = self._hearing[node]
        found = [of_role[role] for role in held if role in of_role] or list(of_role.values())
        if len(found) == 1:
            return found[0]
        return None if None in found else frozenset[int]().union(*filter(None, found))

    @cached_property
    def digest(self) -> str:
        """Tells this policy from another one."""
        return hashlib.sha256(encode_value(self.model_dump(mode="json"))).hexdigest()[:16]

    def node(self, name: str) -> Node:
        """Find a node that is there."""
        return self.nodes[self.node_numbers[name]]


class _Kept(NamedTuple):
    """Who hears something, as bits of roles.

    Attributes:
        roles: Whose holders do.
        apart: Whose holders do not, whatever else they hold.
        always: But for holders of these.
    """

    roles: int
    apart: int = 0
    always: int = 0

    def is_heard(self, held: int) -> bool:
        """Whether a holder of some roles hears it."""
        return bool(held & self.roles) and not (held & self.apart and not held & self.always)


def bits_of(numbers: Iterable[int]) -> int:
    """Write a set of numbers as bits: sets of nodes are put together in one step."""
    return sum(1 << number for number in frozenset(numbers))


def numbers_of(bits: int) -> tuple[int, ...]:
    """Read numbers off their bits, in their order."""
    return tuple([number for number in range(bits.bit_length()) if bits >> number & 1])


def _hearers(policy: Policy, node: Node, role: Name) -> frozenset[int] | None:
    """Return the roles that hear what is said as one of the roles of a node; None if all do."""
    heard_by = policy.heard_by if node.heard_by is None else node.heard_by
    if isinstance(heard_by, Mapping):
        heard_by = heard_by.get(role, policy.heard_by)
    match heard_by:
        case "all":
            return None
        case "node":
            names: Iterable[Name] = node.roles
        case "leader":
            names = () if policy.leader is None else (policy.leader,)
            if role in names:
                return None
        case _:
            names = heard_by
    return None if "all" in names else frozenset([policy.role_numbers[name] for name in names])


class Casting(PolicyPart):
    """Who holds a role; nobody is named to members that are not to know its holders."""

    role: Name
    members: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_ROLES)]


def people_of(policy: Policy, cast: Sequence[Casting]) -> frozenset[AgentId]:
    """Return those who play roles that people play."""
    return frozenset([agent for role, casting in zip(policy.roles, cast, strict=True) if role.human for agent in casting.members])
