"""What waits for people, as programs and pages are told it: with the form of the answer, and what else could be said or cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.documents import Instant
from ioa.client.seat import Awaited, awaited_of, people_in
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Said
from ioa.group.forms import Blank, in_words
from ioa.group.policy.offer import Offer
from ioa.group.policy.watching import NAMING, nameable
from ioa.group.requests import GroupSnapshot
from ioa.protocol.ids import AgentId, CommId, GoalId, UserId
from ioa.protocol.messages import Discussion, Message, Thinking
from ioa.protocol.model import Model
from ioa.protocol.policy import END, FieldKind, Guard
from ioa.protocol.team import person_of
from ioa.protocol.texts import shortened

_PAGE_ENTRIES = 32
_BEGINNING_BYTES, _BEGINNING_OF_FIELD_BYTES = 1_000, 200


class LastDocument(Model):
    """What a person has heard last."""

    sender: AgentId
    content: str


class BlankDocument(Model):
    """A field of a form, with what goes into it; see `ioa.group.forms.Blank`."""

    name: str
    kind: FieldKind
    values: tuple[str, ...]
    lowest: int | None
    highest: int | None
    required: bool
    told: str

    @classmethod
    def of(cls, blank: Blank) -> Self:
        """Describe a field."""
        return cls(**blank._asdict(), told=in_words(blank))


class ActDocument(Model):
    """Something that a person does in turns, and why it cannot now; `why` is empty if it can."""

    act: Literal["say", "decide", "conclude", "pass"]
    legal: bool
    why: str


class AwaitedDocument(Model):
    """What waits for a person.

    Attributes:
        item: By which it is answered.
        told: What its roles and the node tell it.
        options: What it may choose: an option, a way out, or who speaks next.
        members: Whom it may name with an option.
        draft: Whether what it says is reviewed before others hear it.
        again: Whether a draft of its was passed, and is to be said again by the item alone.
        form: The fields once more, as a page draws them.
        most: How many of `next_speakers` may be chosen at once, with commas between.
        acts: What could be done in a turn, with the reason where it cannot.
        cut: Whether one of its texts is told as it begins only.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    item: str
    person: Annotated[str, Field(serialization_alias="as")]
    kind: Literal["say", "decide", "conclude"]
    goal: str
    comm_id: CommId
    turn: int
    node: str
    told: tuple[str, ...]
    until: Instant | None
    options: tuple[str, ...]
    default: str | None
    about: str | None
    fields: dict[str, str]
    required: tuple[str, ...]
    members: dict[str, tuple[AgentId, ...]]
    guards: tuple[str, ...]
    draft: bool
    again: bool
    last: LastDocument | None
    goal_id: GoalId
    user: UserId | None
    go: tuple[str, ...]
    next_speakers: tuple[AgentId, ...]
    most: int
    form: tuple[BlankDocument, ...]
    acts: tuple[ActDocument, ...]
    cut: bool = False

    @classmethod
    def of(cls, awaited: Awaited) -> Self:
        """Describe what waits."""
        offered, last = awaited.offer, awaited.last
        words = last.payload if last is not None and isinstance(last.payload, Discussion) else None
        return cls(
            item=awaited.item,
            person=person_of(awaited.me),
            kind=awaited.kind,
            goal=awaited.goal,
            comm_id=awaited.state.comm_id,
            turn=awaited.state.turn,
            node=awaited.part.node,
            told=awaited.part.prompts,
            until=awaited.until,
            options=offered.options or (*offered.go, *offered.next_speakers),
            default=offered.default or None,
            about=offered.about,
            fields={blank.name: in_words(blank) for blank in offered.form},
            required=tuple(blank.name for blank in offered.form if blank.required),
            members={choice: tuple(nameable(awaited.state, choice)) for choice in naming(offered)},
            guards=tuple(map(_guard_in_words, offered.guards)),
            draft=offered.reviewed,
            again=bool(offered.again),
            last=None if last is None or words is None else LastDocument(sender=last.header.sender, content=words.content),
            goal_id=awaited.state.goal_id,
            user=awaited.state.user,
            go=offered.go,
            next_speakers=offered.next_speakers,
            most=offered.most_named,
            form=tuple(map(BlankDocument.of, offered.form)),
            acts=tuple(_acts(awaited)),
        )

    def begun(self) -> Self:
        """Tell of each text how it begins, as lists do, where one may have 200,000 characters; what can be chosen stays whole."""
        begin, tell = partial(shortened, max_bytes=_BEGINNING_BYTES), partial(shortened, max_bytes=_BEGINNING_OF_FIELD_BYTES)
        begun = self.model_copy(
            update={
                "goal": begin(self.goal),
                "told": tuple(map(begin, self.told)),
                "fields": {name: tell(words) for name, words in self.fields.items()},
                "guards": tuple(map(begin, self.guards)),
                "last": self.last and self.last.model_copy(update={"content": begin(self.last.content)}),
                "form": tuple([blank.model_copy(update={"told": tell(blank.told)}) for blank in self.form]),
            }
        )
        return begun.model_copy(update={"cut": begun != self})


_ASKED = {"say": "to speak", "decide": "to decide", "conclude": "to state the conclusion"}


def asked_in_words(waits: AwaitedDocument) -> str:
    """Say what is asked of a person, for who reads no form."""
    said = f"{waits.last.sender}: {continued(waits.last.content)}" if waits.last else ""
    options = ", ".join(map(shown_in_line, waits.options))
    default = f", then {shown_in_line(waits.default)}" if waits.default else ""
    blanks = [f"{blank.name}{'' if blank.required else ' (may be left out)'}: {shown_in_line(blank.told)}" for blank in waits.form]
    lines = (
        f"{waits.person} is {_ASKED[waits.kind]}.",
        *map(continued, waits.told),
        said,
        *(f"Your words: {continued(guard)}." for guard in waits.guards),
        f"Choose one of {options}." if waits.kind == "decide" else "",
        f"You may go on to {options}." if waits.kind == "say" and waits.options else "",
        f"Fill in {'; '.join(blanks)}." if blanks else "",
        f"Until {waits.until:%Y-%m-%d %H:%M} UTC{default}." if waits.until else "",
    )
    return "\n".join(filter(None, lines))


def naming(offered: Offer) -> Sequence[str]:
    """Return the options that name members."""
    return [one for one in offered.options if offered.about == "watch" and one in NAMING]


def _acts(awaited: Awaited) -> Sequence[ActDocument]:
    offered, kind = awaited.offer, awaited.kind
    if kind == "decide":
        whys = {"decide": "", "say": "you are asked to decide", "conclude": "you are asked to decide", "pass": ""}
    elif kind == "conclude":
        whys = {"say": "the discussion has ended", "conclude": "", "pass": "nobody else states the conclusion"}
    elif offered.again:
        whys = {"say": "", "conclude": "your draft is said first", "pass": "your draft was passed"}
    else:
        ways = f"from here you lead on to {', '.join(offered.go)}" if offered.go else "the policy leads on from here"
        whys = {"say": "", "conclude": "" if END in offered.go else ways, "pass": ""}
    return [ActDocument.model_validate({"act": act, "legal": not why, "why": why}) for act, why in whys.items()]


def _guard_in_words(guard: Guard) -> str:
    match guard.kind:
        case "not_empty":
            return "say something"
        case "longest":
            return f"have at most {guard.most:,} characters"
        case "without":
            return f"do without {', '.join(guard.words)}"


async def waiting_for_anybody(system: NatsSystemClient) -> AsyncIterator[Awaited]:
    """Yield what waits for any person in a group that is open."""
    before, complete = None, False
    while not complete:
        page = await system.groups(before=before, open_only=True)
        for group in page.groups:
            for person in people_in(group.state):
                awaited = None if group.charter is None else awaited_of(group.charter, group.state, person)
                if awaited is not None:
                    yield replace(awaited, last=await _last_heard(system, group, person))
        before, complete = page.before, page.before is None


async def _last_heard(system: NatsSystemClient, group: GroupSnapshot, person: AgentId) -> Message | None:
    """Return what a person has heard last, if that is among the last entries: of a log that is long no more is read."""
    for stored in reversed(await system.group_entries(group.state.comm_id, before=group.seq + 1, limit=_PAGE_ENTRIES)):
        event = stored.entry.event
        if isinstance(event, Said) and person in stored.entry.audience and not isinstance(event.message.payload, Thinking):
            return event.message
    return None
