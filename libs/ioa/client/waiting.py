"""Open turns of people in groups: to speak, to decide, or to state the conclusion; as objects, as JSON documents and in words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.documents import Instant
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Said
from ioa.group.legality import TO_CONCLUDE, Offer, offer
from ioa.group.policy.casting import part_of
from ioa.group.policy.deciding import NAMING, nameable
from ioa.group.requests import GroupSnapshot
from ioa.group.state import Asking, Concluding, Discussing, Gathering, GroupState
from ioa.protocol.ids import AgentId, CommId, GoalId, UserId
from ioa.protocol.messages import Discussion, Message, Thinking
from ioa.protocol.model import Model
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import END, FieldKind, FormField, Guard
from ioa.protocol.setup.charter import Charter
from ioa.protocol.teams.team_file import person_of
from ioa.protocol.texts import shortened

_PAGE_ENTRIES = 32
_TEXT_BYTES, _FIELD_BYTES = 1_000, 200
_KINDS = {"say": "to speak", "decide": "to decide", "conclude": "to state the conclusion"}
_ABOUT = {
    "exit": "where the group goes on",
    "speaker": "who speaks next",
    "review": "whether this draft is passed",
    "watch": "whether to step in",
}


@dataclass(frozen=True)
class Awaited:
    """An open turn of a person.

    Attributes:
        me: The person's seat.
        policy: Policy of the group.
        offer: Legal messages and choices.
        last: Last message that the person received, if it was read.
    """

    me: AgentId
    charter: Charter
    policy: Policy
    state: GroupState
    offer: Offer
    last: Message | None = None

    @property
    def kind(self) -> Literal["say", "decide", "conclude"]:
        """Kind of the turn."""
        return "conclude" if self.offer.concluding else "decide" if self.offer.options else "say"

    @property
    def item(self) -> str:
        """Reference for the answer: the group and the turn."""
        return f"{self.state.comm_id}.{self.state.turn}"

    @property
    def until(self) -> datetime | None:
        """Time limit of the turn."""
        stage = self.state.stage
        if isinstance(stage, Gathering):
            return next((seat.until for seat in stage.seats if seat.agent_id == self.me), None)
        return stage.until if isinstance(stage, Discussing | Asking | Concluding) else None


def open_turn(charter: Charter, state: GroupState, me: AgentId, last: Message | None = None) -> Awaited | None:
    """Return the open turn of a member; None if it has none."""
    policy = charter.policy
    if policy is None or me not in state.floor:
        return None
    return Awaited(me, charter, policy, state, offer(policy, state, me) or TO_CONCLUDE, last)


def people_in(state: GroupState) -> tuple[AgentId, ...]:
    """Return the members that are people, and are not removed."""
    return tuple([one.agent_id for one in state.members if one.human and not one.removed])


class LastDocument(Model):
    """The last message that a person received."""

    sender: AgentId
    content: str


class BlankDocument(Model):
    """A field of a form, with a description of its values; see `ioa.protocol.policy.FormField`."""

    name: str
    kind: FieldKind
    values: tuple[str, ...]
    lowest: int | None
    highest: int | None
    required: bool
    told: str

    @classmethod
    def of(cls, blank: FormField) -> Self:
        """Describe a field."""
        return cls.model_validate({**dict(blank), "values": blank.options, "told": blank.description})


class ActDocument(Model):
    """A kind of action in a turn; `why` is the reason if it is not legal now."""

    act: Literal["say", "decide", "conclude", "pass"]
    legal: bool
    why: str


class AwaitedDocument(Model):
    """An open turn of a person.

    Attributes:
        item: Reference for the answer.
        told: Prompts of the person's roles and of the node.
        options: Possible choices: options, exits or next speakers.
        members: Members that each option can name.
        draft: Whether the message is reviewed before others receive it.
        again: Whether a draft passed its review; it is sent again by an answer that contains only the item.
        form: The fields to fill in.
        most: Maximum number of `next_speakers` in one choice, separated by commas.
        acts: Actions of a turn, with the reason if one is not legal.
        cut: Whether one of the texts is shortened.
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
        """Describe an open turn."""
        offered, state, last = awaited.offer, awaited.state, awaited.last
        part = part_of(awaited.policy, state, awaited.me)
        said = last.payload if last is not None else None
        naming = [one for one in offered.options if offered.about == "watch" and one in NAMING]
        return cls.model_validate(
            {
                **dict(state),
                **offered._asdict(),
                "item": awaited.item,
                "person": person_of(awaited.me),
                "kind": awaited.kind,
                "goal": awaited.charter.goal,
                "node": part.node,
                "told": part.prompts,
                "until": awaited.until,
                "options": offered.options or (*offered.go, *offered.next_speakers),
                "default": offered.default or None,
                "members": {choice: nameable(state, choice) for choice in naming},
                "guards": [*map(_describe_guard, offered.guards)],
                "draft": offered.reviewed,
                "again": bool(offered.again),
                "last": {"sender": last.header.sender, "content": said.content} if last and isinstance(said, Discussion) else None,
                "most": offered.most_named,
                "form": [*map(BlankDocument.of, offered.form)],
                "acts": _acts(awaited),
            }
        )

    def begun(self) -> Self:
        """Return a copy for a list, with the beginning of each text; choices are not shortened."""
        text, field = partial(shortened, max_bytes=_TEXT_BYTES), partial(shortened, max_bytes=_FIELD_BYTES)
        begun = self.model_copy(
            update={
                "goal": text(self.goal),
                "told": tuple(map(text, self.told)),
                "guards": tuple(map(text, self.guards)),
                "last": self.last and self.last.model_copy(update={"content": text(self.last.content)}),
                "form": tuple([blank.model_copy(update={"told": field(blank.told)}) for blank in self.form]),
            }
        )
        return begun.model_copy(update={"cut": begun != self})


def asked_in_words(waits: AwaitedDocument) -> str:
    """Describe an open turn for a reader without a form."""
    about, node = f" {_ABOUT[waits.about]}" if waits.about else "", f" at {waits.node}" if waits.node else ""
    options = ", ".join(map(shown_in_line, waits.options))
    default = f", then {shown_in_line(waits.default)}" if waits.default else ""
    blanks = [f"{blank.name}{'' if blank.required else ' (may be left out)'}: {shown_in_line(blank.told)}" for blank in waits.form]
    lines = (
        f"{waits.person} is {_KINDS[waits.kind]}{about}{node}.",
        *map(continued, waits.told),
        f"{waits.last.sender}: {continued(waits.last.content)}" if waits.last else "",
        "Your draft was passed: send it again by the item alone." if waits.again else "",
        "Your words are a draft: others receive it once it is passed." if waits.draft else "",
        *(f"Your words: {continued(guard)}." for guard in waits.guards),
        f"Choose one of {options}." if waits.kind == "decide" else "",
        f"You may go on to {options}." if waits.kind == "say" and waits.options else "",
        f"Fill in {'; '.join(blanks)}." if blanks else "",
        *(f"Name some `members` to {choice}: {', '.join(names)}." for choice, names in waits.members.items()),
        f"Until {waits.until:%Y-%m-%d %H:%M} UTC{default}." if waits.until else "",
    )
    return "\n".join(filter(None, lines))


def _acts(awaited: Awaited) -> Sequence[ActDocument]:
    offered, kind = awaited.offer, awaited.kind
    if kind == "decide":
        whys = {"decide": "", "say": "you are asked to decide", "conclude": "you are asked to decide", "pass": ""}
    elif kind == "conclude":
        whys = {"say": "you are asked for the conclusion", "conclude": "", "pass": "you are asked for the conclusion"}
    elif offered.again:
        whys = {"say": "", "conclude": "your draft was passed", "pass": "your draft was passed"}
    else:
        ways = f"from here you lead on to {', '.join(offered.go) or 'the next node'}"
        whys = {"say": "", "conclude": "" if END in offered.go else ways, "pass": ""}
    return [ActDocument.model_validate({"act": act, "legal": not why, "why": why}) for act, why in whys.items()]


def _describe_guard(guard: Guard) -> str:
    told = ["say something"] if guard.not_empty else []
    told += [f"have at most {guard.longest:,} characters"] if guard.longest else []
    told += [f"do without {', '.join(guard.without)}"] if guard.without else []
    return " and ".join(told)


async def open_groups(system: NatsSystemClient, owner: UserId | None = None) -> AsyncIterator[GroupSnapshot]:
    """Yield the open groups of a user's goals; None: of all users."""
    page = await system.groups(open_only=True, owner=owner)
    while True:
        for group in page.groups:
            yield group
        if page.before is None:
            return
        page = await system.groups(before=page.before, open_only=True, owner=owner)


async def waiting_for_people(system: NatsSystemClient) -> AsyncIterator[Awaited]:
    """Yield the open turns of all people in open groups."""
    async for group in open_groups(system):
        for person in people_in(group.state):
            if group.charter is not None and person in group.state.floor:
                last = await _last_received(system, group, person)
                if (awaited := open_turn(group.charter, group.state, person, last)) is not None:
                    yield awaited


async def _last_received(system: NatsSystemClient, group: GroupSnapshot, person: AgentId) -> Message | None:
    """Return the last message that a person received, if it is among the last entries of the log."""
    for stored in reversed(await system.group_entries(group.state.comm_id, before=group.seq + 1, limit=_PAGE_ENTRIES)):
        event = stored.entry.event
        if isinstance(event, Said) and person in stored.entry.audience and not isinstance(event.message.payload, Thinking):
            return event.message
    return None
