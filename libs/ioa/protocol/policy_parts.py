"""The parts of a policy: roles, nodes, their turns, forms and exits. The classes read the shorthands of team files themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    StringConstraints,
    model_serializer,
    model_validator,
)

from ioa.protocol.model import FailFast

MAX_ROLES, MAX_NODES = 64, 128
MAX_PROMPT_CHARS = 8_000
MAX_FIELDS, MAX_FIELD_CHARS, MAX_OPTION_CHARS = 16, 200, 80
"""Maximum number of fields of a form, and of characters of a text in a field and of an option."""
MAX_WRITES = 16
"""Maximum number of texts that a node may write."""
END = "end"
"""Target of an exit that ends the discussion; no node has this name."""
STAY = "stay"
"""Choice of a judge that keeps the group in the node."""
NOTHING = "nothing"
"""Choice of a watcher that changes nothing."""

NAME = r"^[a-z][a-z0-9_-]{0,31}$"
"""Pattern of the name of a role, a node and a field."""

Name = Annotated[str, Field(pattern=NAME)]
Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Whole = Annotated[int, Field(strict=True, ge=1, le=10_000)]


def _no_text(written: object) -> object:
    if isinstance(written, str):
        raise ValueError("must be a number of seconds")
    return written


def _short(table: Callable[[str], object]) -> BeforeValidator:
    """Read a text as another value."""
    return BeforeValidator(lambda written: table(written) if isinstance(written, str) else written)


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"lists {name!r} twice")
    return names


_different = AfterValidator(_each_once)
list_of_one = _short(lambda written: (written,))

Seconds = Annotated[timedelta, BeforeValidator(_no_text), Field(gt=timedelta(0), le=timedelta(days=30))]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelled name, as the end of a sentence; empty if no name is similar."""
    names = list(islice(known, 256))
    close = [one for one in names if len(one) > 1 and name.startswith(one)] or get_close_matches(name[:64], names, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def listed(names: Iterable[str]) -> str:
    """Join names, at most twelve."""
    known = list(names)
    return ", ".join(known[:12]) + (" …" if len(known) > 12 else "")


class PolicyPart(FailFast):
    """A part of a policy. An unknown field is an error. A field with its default is not written."""

    model_config = ConfigDict(frozen=True, ser_json_timedelta="float")
    short_fields: ClassVar[tuple[str, ...]] = ()
    """Further fields of a team file, which are read before the part is."""

    @model_validator(mode="before")
    @classmethod
    def _has_known_fields(cls, written: Any) -> Any:
        known = (*cls.model_fields, *cls.short_fields)
        for name in written if isinstance(written, Mapping) else ():
            if name not in known:
                name = str(name)[:64]
                raise ValueError(f"there is no `{name}`{nearest(name, known) or f'; there are {listed(known)}'}")
        return written

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        defaults = {name: field.get_default(call_default_factory=True) for name, field in type(self).model_fields.items()}
        written: dict[str, Any] = serialize(self)
        return {name: value for name, value in written.items() if getattr(self, name) != defaults[name]}


class Memory(PolicyPart):
    """Selection from the messages that a member has heard, for its turns.

    Attributes:
        window: Number of the latest messages, its own included.
        last: Additional number of the latest messages of the holders of a role. Without `window` only these are shown.
        summary: The member's model sums up the older messages, each time after this number of further messages.
        relevant: Number of passages that fit the last message best, from messages that are not shown, and from other groups of the
            same user, for goals with the same labels, whose policies have `relevant` too; of each group the last 4 MB.
    """

    window: Whole | None = None
    last: Annotated[Mapping[Name, Whole], Field(max_length=MAX_ROLES)] = Field(default_factory=dict)
    summary: Whole | None = None
    relevant: Annotated[int, Field(strict=True, ge=1, le=20)] | None = None

    @model_validator(mode="after")
    def _shows_messages(self) -> Memory:
        if not (self.window or self.last or self.relevant):
            raise ValueError("shows no message: give `window`, `last` or `relevant`")
        if self.summary and not (self.window or self.last):
            raise ValueError("`summary` needs `window` or `last`, because it sums up the other messages")
        return self


class Role(PolicyPart):
    """A part that members play.

    Attributes:
        name: Name of the role, not `all`.
        prompt: Instructions for its holders, in addition to their own.
        at_most: Maximum turns of a holder in the whole group.
        timeout: Seconds that a holder has for a turn. Default: the value of its card or its group.
        secret: Only its holders, and members that hear all, know its holders and its prompt.
        hears_all: Its holders hear every message of the group and see all results.
        memory: The messages that its holders see. Default: all that they have heard.
        human: A person holds it: no model is asked, and the person is waited for and never lost.
    """

    short_fields = ("agent", "agents", "need", "count")

    name: Name
    prompt: Prompt = ""
    at_most: Whole | None = None
    timeout: Seconds | None = None
    secret: StrictBool = False
    hears_all: StrictBool = False
    memory: Memory | None = None
    human: StrictBool = False


Hearing = Literal["all", "node", "leader"]
"""The members that hear a message: all, the speakers of the node, or the leader, which all members hear."""

Mode = Literal["order", "nominate", "random", "hub", "follow", "together", "ask"]
Peers = Literal["at_once", "after", "never"]


class Turns(PolicyPart):
    """The order of speakers in a node.

    Attributes:
        mode: How the next speaker is found.
        by: The role that is the hub and speaks after each other member, or that is asked for the next speaker.
        follow: For a role the role that speaks after it.
        repeat: One member may speak twice in a row.
        tries: Decisions of the asked member that may be rejected; then the default counts.
        peers: When members that speak in parallel read each other: at once; after their own message or silence; or never, except
            for the hub that asked them.
    """

    mode: Mode = "order"
    by: Name | None = None
    follow: Annotated[Mapping[Name, Name], Field(max_length=MAX_ROLES)] = Field(default_factory=dict)
    repeat: StrictBool = False
    tries: Annotated[int, Field(strict=True, ge=1, le=5)] = 2
    peers: Peers = "after"

    @model_validator(mode="after")
    def _has_its_roles(self) -> Turns:
        if (self.by is not None) != (self.mode in ("hub", "ask")):
            raise ValueError(f"the mode {self.mode!r} {'takes no `by`' if self.by else 'needs `by`, a role'}")
        if bool(self.follow) != (self.mode == "follow"):
            what = "takes no `follow`" if self.follow else "needs `follow`, a table with the role after each role"
            raise ValueError(f"the mode {self.mode!r} {what}")
        return self


FieldKind = Literal["text", "number", "yes_no", "member", "option"]
Bound = Annotated[StrictInt, Field(ge=-(2**53), le=2**53)]
FieldValue = StrictBool | Bound | Annotated[StrictStr, Field(max_length=MAX_FIELD_CHARS)]
"""Value of a field: of a member its id, of an option its text."""

Option = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_OPTION_CHARS)]
"""An option of a field. Answers are stripped, so options are stripped too."""

SHORT_FORMS = "`text`, `number`, `1..10`, `yes/no`, `this|that`, `member`, or a role"
"""Short forms of a field; a `?` after it makes the field optional."""
_PLAIN: Mapping[str, FieldKind] = {"text": "text", "number": "number", "yes/no": "yes_no", "member": "member"}
_NUMBER = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})")


class FormField(PolicyPart):
    """A value that a message carries in addition to its words.

    Attributes:
        name: Name of the field.
        kind: A text of up to 200 characters, a whole number, yes or no, a member, or one of `options`.
        role: The role of the member. Default: any member.
        lowest: The least number.
        highest: The greatest number.
        options: The possible values of an option.
        required: Each message has a value for it.
    """

    name: Name
    kind: FieldKind = "text"
    role: Name | None = None
    lowest: Bound | None = None
    highest: Bound | None = None
    options: Annotated[tuple[Option, ...], Field(max_length=16), _different] = ()
    required: StrictBool = True

    @model_validator(mode="after")
    def _fits_its_kind(self) -> FormField:
        if self.role is not None and self.kind != "member":
            raise ValueError("only a member has a `role`")
        if (self.lowest, self.highest) != (None, None) and self.kind != "number":
            raise ValueError("only a number has bounds")
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise ValueError(f"no number is possible: {self.lowest} is more than {self.highest}")
        if bool(self.options) != (self.kind == "option"):
            raise ValueError("the kind `option`, and no other, has `options`")
        return self

    def accepts(self, value: FieldValue | None) -> bool:
        """Return whether a value has the kind of the field, and is within its bounds or options; without options any member is."""
        match self.kind:
            case "text":
                return isinstance(value, str) and bool(value.strip())
            case "number":
                if not isinstance(value, int) or isinstance(value, bool):
                    return False
                return (self.lowest is None or value >= self.lowest) and (self.highest is None or value <= self.highest)
            case "yes_no":
                return isinstance(value, bool)
            case _:
                return isinstance(value, str) and (value in self.options or (self.kind == "member" and not self.options))

    @property
    def description(self) -> str:
        """The possible values, for people and models."""
        match self.kind:
            case "text":
                return "a text that is not empty"
            case "number":
                low = "" if self.lowest is None else f", {self.lowest} or more"
                high = "" if self.highest is None else f", {self.highest} or less"
                return f"a whole number{low}{high}"
            case "yes_no":
                return "true or false"
            case _:
                return f"one of {', '.join(self.options)}" if self.options else "the id of a member"


def read_field(written: str) -> dict[str, Any]:
    """Read the short form of a field; a `?` at its end makes it optional.

    Raises:
        ValueError: The text is no short form.
    """
    what = written.strip().removesuffix("?").rstrip()
    more: dict[str, Any] = {"required": False} if what != written.strip() else {}
    if what in _PLAIN:
        return {"kind": _PLAIN[what], **more}
    if bounds := _NUMBER.fullmatch(what):
        return {"kind": "number", "lowest": int(bounds[1]), "highest": int(bounds[2]), **more}
    if "|" in what:
        return {"kind": "option", "options": what.split("|"), **more}
    if not re.match(NAME, what):
        raise ValueError(f"a field cannot be {written[:80]!r}; it may be {SHORT_FORMS}")
    return {"kind": "member", "role": what, **more}


def _form(written: object) -> object:
    """Read a table of fields by name, each a table or a short form."""
    if not isinstance(written, Mapping):
        return written
    for wrong in [one for one in written.values() if not isinstance(one, str | Mapping)]:
        raise ValueError(f"a field cannot be {wrong!r}; it may be a table, or {SHORT_FORMS}")
    return [{**(read_field(one) if isinstance(one, str) else one), "name": name} for name, one in written.items()]


Form = Annotated[tuple[FormField, ...], Field(max_length=MAX_FIELDS)]


class Opening(PolicyPart):
    """The first speaker of a node.

    Attributes:
        role: The role of the node that speaks first.
        say: Its words. Default: the role finds its own.
    """

    role: Name
    say: Prompt = ""


def _plain_value(value: object) -> object:
    is_number = isinstance(value, int) and abs(value) <= 2**53
    is_text = isinstance(value, str) and len(value) <= MAX_FIELD_CHARS
    if value is not None and not is_number and not is_text:
        raise ValueError(f"must be true or false, a whole number or a text of up to {MAX_FIELD_CHARS} characters")
    return value


class Condition(PolicyPart):
    """The condition of an exit. All that is given must hold.

    Attributes:
        turns: The node has had at least this number of turns in this visit; with `again = "continue"` in all visits.
        rounds: Each member that is present has had at least this number of turns in this visit.
        visits: The node has been entered at least this number of times.
        field: A field of the node's form has the value of `equals` or matches `like`; without both it has any value.
        by: The members whose values count in this visit: the last member that filled the field in, any, all present members,
            or more than half of the cast.
        of: Only values of holders of this role count.
        equals: The exact value.
        like: A pattern for the value: `*` is any text, `?` any character, `#` a digit; case does not count.
        left: A role with at most `at_most` holders left. Removed holders do not count, lost ones do.
        at_most: Maximum number of holders left.
    """

    turns: Whole | None = None
    rounds: Whole | None = None
    visits: Whole | None = None
    field: Name | None = None
    by: Literal["last", "any", "all", "most"] = "last"
    of: Name | None = None
    equals: Annotated[FieldValue | None, BeforeValidator(_plain_value)] = None
    like: Annotated[str | None, Field(min_length=1, max_length=MAX_FIELD_CHARS)] = None
    left: Name | None = None
    at_most: Annotated[int | None, Field(strict=True, ge=0, le=MAX_ROLES)] = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Condition:
        if self.field is None and (self.by != "last" or not (self.of is self.equals is self.like is None)):
            raise ValueError("`by`, `of`, `equals` and `like` need the `field` that they test")
        if (self.left is None) != (self.at_most is None):
            raise ValueError("`left` and `at_most` go together: a role, and the maximum number of its holders")
        if self.equals is not None and self.like is not None:
            raise ValueError("give `equals` or `like`, not both")
        if all(value is None for name, value in self if name != "by"):
            raise ValueError("an empty `when` never holds: leave it out, or give a condition")
        return self


class Removal(PolicyPart):
    """The member that an exit removes from the group.

    Attributes:
        field: A field of the node's form that names a member.
        by: The member that was named `most` often, or by the `last` speaker.
        ties: If several were named most often: no member is removed, or the member that was named first.
    """

    field: Name
    by: Literal["most", "last"] = "most"
    ties: Literal["none", "first"] = "none"


class Exit(PolicyPart):
    """A way out of a node.

    Attributes:
        to: The next node, or `end`.
        when: Its condition. A rule without a condition is taken when the turns of the node are over.
        by: A `rule` takes it, the `speaker` chooses it, or a role, the judge, is asked.
        remove: The member that is removed when it is taken.
    """

    to: Name
    when: Condition | None = None
    by: Name = "rule"
    remove: Removal | None = None

    @property
    def judge(self) -> str | None:
        """The role that is asked whether it is taken."""
        return None if self.by in ("rule", "speaker") else self.by

    @property
    def is_bare(self) -> bool:
        """Whether it is a rule without a condition."""
        return self.by == "rule" and self.when is None


class Guard(PolicyPart):
    """A requirement for each message of a node. A message that violates it is rejected, and its sender may send another message.

    Attributes:
        not_empty: The message is not empty.
        longest: Maximum characters of the message.
        without: Forbidden words, also within other words; case does not count. Texts in the form and on the board are checked too.
    """

    not_empty: StrictBool = False
    longest: Annotated[int | None, Field(strict=True, ge=1, le=200_000)] = None
    without: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=64)] = ()

    @model_validator(mode="after")
    def _requires_something(self) -> Guard:
        if not (self.not_empty or self.longest or self.without):
            raise ValueError("give `not_empty`, `longest` or `without`")
        return self

    def objection(self, content: str, texts: Iterable[str] = ()) -> str:
        """Return the fault of a message and the texts that it carries; empty if it has none."""
        if self.not_empty and not content.strip():
            return "it says nothing"
        if self.longest is not None and len(content) > self.longest:
            return f"it has {len(content):,} characters, and {self.longest:,} are the most"
        said = [one.casefold() for one in (content, *texts)] if self.without else []
        held = [word for word in self.without if any(word.casefold() in one for one in said)]
        return f"it must do without {', '.join(map(repr, held))}" if held else ""


class Review(PolicyPart):
    """The review of a message before other members hear it.

    Attributes:
        by: The reviewing role; its own messages are not reviewed.
        tries: Maximum number of rejected drafts in a turn.
        then: After the last rejection, or without a reviewer: `drop` ends the turn without a message, `pass` sends the last draft,
            and `end` ends the group as `refused`.
    """

    by: Name
    tries: Annotated[int, Field(strict=True, ge=1, le=5)] = 3
    then: Literal["drop", "pass", "end"] = "drop"


HEARD_BY = "it is `all`, `node`, `leader`, a role, a list of roles, or a table of such lists for the roles that speak here"


def _hearing(written: object) -> object:
    """Read the members that hear a node: a single role is a list of length 1, also in a table."""
    if written is None or (isinstance(written, str) and written in get_args(Hearing)):
        return written
    table = written if isinstance(written, Mapping) else {"any": written}
    lists = {role: (one,) if isinstance(one, str) else one for role, one in table.items()}
    names = [name for role, one in lists.items() for name in (role, *(one if isinstance(one, list | tuple) else (one,)))]
    if not all(isinstance(name, str) and re.match(NAME, name) for name in names):
        raise ValueError(f"cannot be {str(written)[:80]}; {HEARD_BY}")
    return lists if isinstance(written, Mapping) else lists["any"]


class Node(PolicyPart):
    """A part of the discussion.

    Attributes:
        name: Name of the node, not `end`.
        roles: The roles that speak here.
        turns: The order of speakers.
        opens: The first speaker.
        prompt: Instructions for the speakers.
        max: Maximum turns of a visit. Default: until an exit is taken; one round if no exit has a condition.
        exits: The exits, in the order in which they are checked.
        again: A new visit counts turns from zero, or continues the count (`continue`); if `max` is used up, it has one turn.
        visits: How often the node may be entered. After that, exits that lead to it are closed.
        form: Fields that each message fills in.
        asked: The judge is asked after each `turn`, or after each `round`: when the number of the node's turns is a multiple of
            the number of present members.
        heard_by: The roles that hear the messages, in addition to the speaker and to members that hear all; or `all`; or a table
            of such lists by the speaker's role. Default: the policy's value.
        guards: Requirements for each message.
        review: The review of each message.
        take: It is left by `one` exit, or by `all` whose condition holds, one after the other.
        join: It may be entered after `any` node that leads to it, or once `all` of them are done.
        asks: The member with the floor may ask the user, and has the floor again with the answer.
        writes: Texts on the board that messages may write, as a new version each time; members that hear the message read it.
        invites: The member with the floor may invite agents, in roles that hear no other messages than itself, and
            keeps the floor.
        tasks: The member with the floor may assign tasks to any member, or wait for tasks, and has the floor again then.
    """

    short_fields = ("then",)

    name: Name
    roles: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_ROLES), _different]
    turns: Annotated[Turns, _short(lambda mode: {"mode": mode})] = Turns()
    opens: Opening | None = None
    prompt: Prompt = ""
    max: Whole | None = None
    exits: Annotated[tuple[Exit, ...], Field(max_length=32)] = (Exit(to=END),)
    again: Literal["anew", "continue"] = "anew"
    visits: Whole | None = None
    form: Annotated[Form, BeforeValidator(_form)] = ()
    asked: Literal["round", "turn"] = "round"
    heard_by: Annotated[Hearing | tuple[Name, ...] | Mapping[Name, tuple[Name, ...]] | None, BeforeValidator(_hearing)] = None
    guards: Annotated[tuple[Annotated[Guard, _short(lambda name: {name: True})], ...], Field(max_length=8)] = ()
    review: Annotated[Review | None, _short(lambda role: {"by": role})] = None
    take: Literal["one", "all"] = "one"
    join: Literal["any", "all"] = "any"
    asks: StrictBool = False
    writes: Annotated[tuple[Name, ...], Field(max_length=MAX_WRITES), _different] = ()
    invites: StrictBool = False
    tasks: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def _with_exits(cls, written: Any) -> Any:
        """Read `then`, a target or several, as exits without a condition."""
        if not isinstance(written, Mapping) or "then" not in written:
            return written
        if "exits" in written:
            raise ValueError("has both `then` and `exits`; `then` is short for exits without a condition")
        targets = written["then"] if isinstance(written["then"], list | tuple) else [written["then"]]
        rest = {name: value for name, value in written.items() if name != "then"}
        return {**rest, "exits": [{"to": to} for to in targets]}

    @property
    def sits_apart(self) -> bool:
        """Whether members may speak in parallel here without reading each other at once."""
        return self.turns.mode in ("together", "hub") and self.turns.peers != "at_once"

    @cached_property
    def judge(self) -> str | None:
        """The role that is asked for an exit."""
        return next((way.judge for way in self.exits if way.judge is not None), None)

    @cached_property
    def is_bare(self) -> bool:
        """Whether no exit has a condition, and none is chosen."""
        return all(way.is_bare for way in self.exits)

    @cached_property
    def rules(self) -> tuple[Exit, ...]:
        """The exits that are taken when a condition holds."""
        return tuple([way for way in self.exits if way.by == "rule" and way.when is not None])

    @cached_property
    def offered(self) -> tuple[Exit, ...]:
        """The exits that a speaker chooses."""
        return tuple([way for way in self.exits if way.by == "speaker"])

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        """The roles that are asked to decide here."""
        named = (self.judge, self.turns.by if self.turns.mode == "ask" else None, self.review and self.review.by)
        return tuple([name for name in named if name])

    @cached_property
    def tested(self) -> tuple[FormField, ...]:
        """The fields that an exit depends on; the state contains no others."""
        named = {one.field for way in self.exits for one in (way.when, way.remove) if one is not None}
        return tuple([one for one in self.form if one.name in named])
