"""Playing a team in memory, with no system and no model: who speaks when, by the same machine that leads real groups.

Members are called as their roles. They say what a script has them say, and else that they speak; where nothing is scripted they
choose nothing, so that the policy leads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ioa.errors import InvalidInputError
from ioa.group.events import Event, GroupLaunched, Said
from ioa.group.forms import Blank
from ioa.group.machine import step
from ioa.group.policy.offer import Offer, offer
from ioa.group.rejection import IllegalEventError
from ioa.group.state import Charter, Ended, GroupState, Limits
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, PoolId
from ioa.protocol.levels import LEVEL
from ioa.protocol.messages import Conclusion, Decision, Discussion, Header, Message, Payload, Phase
from ioa.protocol.policy import Casting, FieldValue
from ioa.protocol.team import Filling, TeamSpec

_START = datetime(2026, 1, 1, tzinfo=UTC)
_COMM, _GOAL = CommId("rehearsal"), GoalId("rehearsal")
_LINE = re.compile(
    r"(?P<who>[A-Za-z0-9_-]+)\s*(?:(?P<how>->|>)\s*(?P<what>[A-Za-z0-9_-]+(?:\s*,\s*[A-Za-z0-9_-]+)*)\s*)?"
    r"(?:\{(?P<fields>[^}]*)\}\s*)?:(?P<words>.*)"
)
_NUMBER = re.compile(r"-?\d{1,15}")
_LED = (Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING)


@dataclass(frozen=True)
class Line:
    """What a script has somebody say: words, and perhaps the next speakers, the way out, or what it fills in.

    Whoever is asked to decide chooses the way out, or the next speaker, of its line.
    """

    words: str = ""
    to: str | None = None
    go: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


Script = Mapping[str, Sequence[Line]]
"""The lines of each member or role, in order."""


@dataclass(frozen=True)
class Played:
    """A turn of a rehearsal. The last one has no node: it is the conclusion, or how the group ended without one."""

    turn: int
    node: str
    speaker: str
    words: str
    offered: Offer | None


def read_script(text: str) -> Script:
    """Read what members say, a line each; one with `#` is a comment.

    `outliner -> finish: That is all.` leads to a node, `host > gardener, botanist: And you?` names who is next, and
    `ada {vote = bob}: He did it.` fills a form in.

    Raises:
        InvalidInputError: It names the line that is none.
    """
    script: dict[str, list[Line]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise InvalidInputError(
                f"Line {number} of the script is not `who: words`, `who > name: words`, `who -> node: words` or"
                " `who {field = value}: words`."
            )
        how, what = found["how"], "".join((found["what"] or "").split()) or None
        pairs = [pair.partition("=") for pair in (found["fields"] or "").split(",") if pair.strip()]
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        said = Line(found["words"].strip(), to=what if how == ">" else None, go=what if how == "->" else None, fields=fields)
        script.setdefault(found["who"], []).append(said)
    return script


def rehearse(team: TeamSpec, script: Script) -> Iterator[Played]:
    """Play a team until its discussion has ended.

    Raises:
        InvalidInputError: A line of the script is not offered when it is to be said.
    """
    charter = _charter(team)
    left = {who: list(lines) for who, lines in script.items()}
    state = step(None, GroupLaunched(at=_START, charter=charter)).state
    while state.course is not None and state.phase in _LED:
        speaker = state.floor[0]
        offered = offer(team.policy, state, speaker)
        assert offered is not None
        line = _line(left, team, state, speaker) if offered.say is None else Line(offered.say)
        said = _spoken(line, speaker, offered)
        turn, node = state.turn, team.policy.nodes[state.course.node].name
        try:
            state = step(state, _said(state, speaker, said), team.policy).state
        except IllegalEventError as refused:
            raise InvalidInputError(f"Turn {turn}, {speaker} in {node}: {refused.message}") from None
        yield Played(turn, node, speaker, _words(said), offered)
    yield _end(state, team)


def _spoken(line: Line, speaker: AgentId, offered: Offer) -> Discussion | Decision:
    """Say a line. What is asked for and is not scripted is filled in with what comes first, and chosen by default."""
    if offered.options:
        return Decision(choice=line.go or line.to or offered.default, content=line.words)
    to = [AgentId(name) for name in line.to.split(",")] if line.to else []
    return Discussion(
        content=line.words or f"({speaker} speaks)",
        next_speaker=to[0] if len(to) == 1 else None,
        next_speakers=tuple(to) if len(to) > 1 else (),
        go=line.go,
        fields={blank.name: _filled(blank, line) for blank in offered.form if blank.required or blank.name in line.fields}
        | {name: value for name, value in line.fields.items() if name not in {blank.name for blank in offered.form}},
    )


def _filled(blank: Blank, line: Line) -> FieldValue:
    """Read what a script has filled in, or fill in what comes first."""
    written = line.fields.get(blank.name)
    match blank.kind:
        case "yes_no":
            return written == "yes" if written in ("yes", "no") else written or False
        case "number":
            return int(written) if written and _NUMBER.fullmatch(written) else written or blank.lowest or 0
        case "text":
            return written or "…"
        case _:
            return written or blank.values[0]


def _words(said: Discussion | Decision) -> str:
    """Show what was said, with what was filled in or chosen."""
    if isinstance(said, Decision):
        return f"decides: {said.choice}"
    filled = ", ".join(f"{name} = {value}" for name, value in said.fields.items())
    return f"{said.content} [{filled}]" if filled else said.content


def _end(state: GroupState, team: TeamSpec) -> Played:
    if state.floor_holder is not None:
        concluder, turn = state.floor_holder, state.turn
        forced = f" (forced: {state.forced})" if state.forced else ""
        step(state, _said(state, concluder, Conclusion(content="Done.")), team.policy)
        return Played(turn, "", concluder, f"states the conclusion{forced}", None)
    assert isinstance(state.stage, Ended)
    return Played(state.turn, "", "", f"the group has ended: {state.stage.reason}", None)


def _line(left: Mapping[str, list[Line]], team: TeamSpec, state: GroupState, holder: AgentId) -> Line:
    """Take the next line that is for a member by its name, or by one of its roles."""
    roles = [team.policy.roles[number].name for number in state.members[state.number_of(holder)].roles]
    for who in dict.fromkeys((holder, *roles)):
        if left.get(who):
            return left[who].pop(0)
    return Line()


def _said(state: GroupState, sender: AgentId, payload: Payload) -> Event:
    header = Header(
        message_id=MessageId(f"m{state.turn}-{sender}"),
        comm_id=_COMM,
        sender=sender,
        state=state.phase,
        turn=state.turn,
        after=0,
        sent_at=_START,
    )
    return Said(at=_START, message=Message(header=header, payload=payload))


def _charter(team: TeamSpec) -> Charter:
    cast = tuple(Casting(role=filling.role, members=_members(filling)) for filling in team.fillings)
    leader = next((one for one in cast if one.role == team.leader.role), cast[0]).members[0]
    members = dict.fromkeys((leader, *(agent for casting in cast for agent in casting.members)))
    return Charter(
        comm_id=_COMM,
        goal_id=_GOAL,
        goal=team.goal,
        owner=leader,
        team_members=tuple(
            AgentCard(agent_id=agent, name=agent, description="A member of a rehearsal.", pool=PoolId(agent)) for agent in members
        ),
        team_up_depth=0,
        limits=Limits(max_turns=team.max_turns, deadline=_START + timedelta(days=1), level=LEVEL),
        policy=team.policy,
        cast=cast,
    )


def _members(filling: Filling) -> tuple[AgentId, ...]:
    """Name the holders of a role: as its agents if there are several, else as the role."""
    if len(filling.agents) > 1:
        return filling.agents
    if filling.count > 1:
        return tuple([AgentId(f"{filling.role}-{number}") for number in range(1, filling.count + 1)])
    return (AgentId(filling.role),)
