"""Rehearsal of a team in memory, without a system or a model, with the state machine of real groups.

Members are named after their roles. Their replies come from a script. A member without a line speaks, or is silent where a form
must be filled in, and leaves choices to the policy. A rejected line is shown, and the member's next line is tried. Turns are
described as in the transcript of a group.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from ioa.client.seat import PersonReply, reply_payload
from ioa.client.transcript import Transcript
from ioa.errors import InvalidInputError
from ioa.group.events import Entry, GroupLaunched, Said
from ioa.group.legality import Offer, offer
from ioa.group.machine import step
from ioa.group.policy.casting import members_in_order
from ioa.group.policy.deciding import PASS
from ioa.group.rejection import IllegalEventError
from ioa.group.state import Ended, GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, PoolId
from ioa.protocol.messages import Header, Message, Payload, Phase
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.policy_parts import listed
from ioa.protocol.setup.charter import Charter, Limits
from ioa.protocol.teams.team_file import TeamSpec
from ioa.protocol.texts import in_words

_START = datetime(2026, 1, 1, tzinfo=UTC)
_COMM, _GOAL = CommId("rehearsal"), GoalId("rehearsal")
_LINE = re.compile(
    r"(?P<who>[\w-]+)\s*(?:(?P<silent>!\s*silent)|"
    r"(?:-?>\s*(?P<choose>[\w-]+(?:\s*,\s*[\w-]+)*)\s*)?(?:\{(?P<fields>[^}]*)\}\s*)?:(?P<words>.*))",
    re.ASCII,
)
_FORMS = '`who: words`, `who > next: words`, `who {field = value, other = "in quotes"}: words` or `who !silent`'
_SILENT = PersonReply(passes=True)
_LED = (Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING)


@dataclass(frozen=True)
class ScriptLine:
    """The reply of a member in one turn, and the number of its line in the script; 0 for a reply that is not in the script."""

    reply: PersonReply
    number: int = 0


Script = Mapping[str, list[ScriptLine]]
"""The lines of each member or role, in order."""


@dataclass(frozen=True)
class Played:
    """A turn of a rehearsal. The last one has no node: it is the conclusion, or the end of the group without one.

    Attributes:
        words: The action and its consequences.
        refused: Reason of a rejection; empty if the action was accepted. The speaker's next line is tried.
        heard_by: Other members that receive the message; None if all do.
    """

    turn: int
    node: str
    speaker: str
    words: str
    offered: Offer | None
    refused: str = ""
    heard_by: Sequence[AgentId] | None = None


def read_script(text: str) -> Script:
    """Read the replies of members, one a line; `#` begins a comment. docs/teams.md lists the forms.

    Raises:
        InvalidInputError: A line has another form; the message names it.
    """
    script: dict[str, list[ScriptLine]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            if (found := _LINE.fullmatch(line.strip())) is None:
                raise ValueError
            fields = _fields(found["fields"] or "")
        except ValueError:
            raise InvalidInputError(f"Line {number} of the script is none of {_FORMS}.") from None
        reply = _SILENT if found["silent"] else PersonReply(found["words"].strip(), found["choose"], fields)
        script.setdefault(found["who"], []).append(ScriptLine(reply, number))
    return script


def _fields(written: str) -> Mapping[str, str]:
    """Read the fields of a line. A value that contains a comma is in double quotes."""
    pairs = shlex.shlex(written, posix=True)
    pairs.whitespace, pairs.whitespace_split, pairs.commenters, pairs.quotes = ",", True, "", '"'
    return {name.strip(): value.strip() for name, value in (pair.split("=", 1) for pair in pairs if pair.strip())}


def rehearse(team: TeamSpec, script: Script) -> Iterator[Played]:
    """Play a team until its discussion has ended. Each line is for one turn of its member, and is removed from the script.

    Raises:
        InvalidInputError: The script has lines for an unknown member.
    """
    policy, charter = team.policy, _charter(team)
    _check_names(script, [*(card.agent_id for card in charter.team_members), *policy.role_numbers])
    drafts: dict[AgentId, Payload] = {}
    transcript, launched = Transcript(), GroupLaunched(at=_START, charter=charter)
    state = step(None, launched).state
    transcript.read(StoredEntry(0, Entry(event=launched, audience=(), state=state)))

    def play(payload: Payload) -> Played:
        nonlocal state
        before, speaker, event = state, state.floor[0], _build_event(state, payload)
        after = step(state, event, policy)
        state = after.state
        lines = transcript.read(StoredEntry(before.turn, Entry(event=event, audience=after.audience, state=state)))
        words = "; ".join(one.text if one.act == "discussion" else f"{one.act}: {one.text}" for one in lines)
        heard_by = None if {*before.hearing} <= {*after.audience} else [one for one in after.audience if one != speaker]
        return Played(before.turn, _node_of(policy, before), speaker, words, offered, heard_by=heard_by)

    while state.course is not None and state.phase in _LED:
        speaker = state.floor[0]
        offered = offer(policy, state, speaker)
        assert offered is not None
        line = _next_line(script, policy, state, offered)
        try:
            payload = drafts[speaker] if offered.again else reply_payload(offered, state, line.reply)
            drafts[speaker] = payload
            yield play(payload)
        except (ValidationError, IllegalEventError, InvalidInputError) as error:
            if line.number:
                why = f"{in_words(error, 'message')}." if isinstance(error, ValidationError) else error.message
                yield Played(state.turn, _node_of(policy, state), speaker, line.reply.text, offered, why)
            else:
                yield play(reply_payload(offered, state, _SILENT))
    if state.floor_holder is not None:
        forced = f" (forced: {state.forced})" if state.forced else ""
        yield Played(state.turn, "", state.floor_holder, f"states the conclusion{forced}", None)
    else:
        assert isinstance(state.stage, Ended)
        yield Played(state.turn, "", "", f"the group has ended: {state.stage.reason}", None)


def _node_of(policy: Policy, state: GroupState) -> str:
    assert state.course is not None
    return policy.nodes[state.course.node].name


def _check_names(script: Script, known: Iterable[str]) -> None:
    names = [*dict.fromkeys(known)]
    if unknown := [f"{who} (line {lines[0].number})" for who, lines in script.items() if who not in names]:
        there = f"members are called by their roles, and there are {listed(names)}"
        raise InvalidInputError(f"The script has lines for unknown members: {', '.join(unknown)}; {there}.")


def _next_line(script: Script, policy: Policy, state: GroupState, offered: Offer) -> ScriptLine:
    """Return the next line for the speaker, by its name or one of its roles. Choices that it leaves open have their default."""
    speaker, line = state.floor[0], ScriptLine(PersonReply(offered.say or ""))
    if offered.say is None and not offered.again:
        roles = [policy.roles[number].name for number in state.members[state.number_of(speaker)].roles]
        lines = next((script[who] for who in (speaker, *roles) if script.get(who)), None)
        line = lines.pop(0) if lines else line
    reply = line.reply
    if reply.passes:
        return line
    if offered.options:
        default = PASS if offered.about == "review" else offered.default
        return replace(line, reply=replace(reply, choose=reply.choose or default))
    return replace(line, reply=replace(reply, text=reply.text or f"({speaker} speaks)"))


def _build_event(state: GroupState, payload: Payload) -> Said:
    header = Header(
        message_id=MessageId(f"m{state.turn}-{state.floor[0]}"),
        comm_id=_COMM,
        sender=state.floor[0],
        state=state.phase,
        turn=state.turn,
        after=0,
        sent_at=_START,
    )
    return Said(at=_START, message=Message(header=header, payload=payload))


def _card(agent: AgentId) -> AgentCard:
    return AgentCard(agent_id=agent, name=agent, description="A member of a rehearsal.", pool=PoolId(agent))


def _charter(team: TeamSpec) -> Charter:
    several = {agent for filling in team.fillings if len(filling.agents) > 1 for agent in filling.agents}
    names = [one.agents if several.intersection(one.agents) else one.names for one in team.fillings]
    cast = tuple([Casting(role=one.role, members=held) for one, held in zip(team.fillings, names, strict=True)])
    leader = next((one for one in cast if one.role == team.leader.role), cast[0]).members[0]
    members, cast = members_in_order(team.policy, (leader, *(agent for casting in cast for agent in casting.members)), cast)
    return Charter(
        comm_id=_COMM,
        goal_id=_GOAL,
        goal=team.goal,
        owner=leader,
        team_members=tuple(_card(agent) for agent in members),
        team_up_depth=0,
        limits=Limits(max_turns=team.max_turns, deadline=_START + timedelta(days=1)),
        policy=team.policy,
        cast=cast,
    )
