"""Rehearsal of a team in memory, without a system or a model, with the state machine of real groups.

Members are named after their roles. Their actions come from a script. A member without a line speaks, or is silent where a form
must be filled in, and leaves choices to the policy. A rejected line is shown, and the member's next line is tried. Turns are
described as in the transcript of a group.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain

from pydantic import ValidationError

from ioa.client.transcript import Transcript
from ioa.errors import InvalidInputError
from ioa.group.events import Entry, Event, GroupLaunched, MemberJoined, MemberLost, Said
from ioa.group.legality import Offer, offer
from ioa.group.machine import step
from ioa.group.policy.casting import members_in_order
from ioa.group.policy.deciding import PASS
from ioa.group.policy.forms import read_value
from ioa.group.rejection import IllegalEventError
from ioa.group.state import Charter, Ended, GroupState, Limits
from ioa.ports.group_log import StoredEntry
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, PoolId, task_id_of_turn
from ioa.protocol.messages import (
    Decision,
    Discussion,
    Header,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.policy import Casting, Policy, listed, nearest
from ioa.protocol.team import TeamSpec
from ioa.protocol.texts import in_words

_START = datetime(2026, 1, 1, tzinfo=UTC)
_COMM, _GOAL = CommId("rehearsal"), GoalId("rehearsal")
_QUOTED = r"""=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_LINE = re.compile(
    r"(?P<who>[A-Za-z0-9_-]+)\s*(?:!\s*(?P<does>silent|lost)|"
    r"(?:(?P<arrow>->|=>|>|<-)\s*(?P<names>[A-Za-z0-9_-]+(?:\s*,\s*[A-Za-z0-9_-]+)*)\s*)?"
    rf"(?:\{{(?P<fields>(?:{_QUOTED}|[^}}])*+)\}}\s*)?:(?P<words>.*))"
)
_PAIR = r"""\s*+([A-Za-z0-9_-]++)\s*+=\s*+("(?:[^"\\]|\\.)*+"|'[^']*+'|[^,"'{\[\s][^,]*+|)\s*+(?:,|\Z)"""
_FORMS = (
    "`who: words`, `who > name: words`, `who -> node: words`, `who => name: task`, `who {field = value}: words`, "
    "`who <- newcomer: words`, `who !silent` or `who !lost`"
)
_NOTHING = Pass(cause=PassCause.NOTHING_TO_ADD)
_LED = (Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING)


@dataclass(frozen=True)
class ScriptLine:
    """The action of a member in one turn.

    Attributes:
        words: Message, reason of a decision, or description of a task.
        arrow: `>` names the next speakers, `->` a node, `=>` assignees of a task, `<-` a newcomer; `silent` or `lost` if the member
            sends nothing; empty if the line names none.
        names: Names after the arrow. A decision chooses the first one.
        fields: Values of the form by field name.
        number: Line number in the script; 0 for an action that is not in the script.
    """

    words: str = ""
    arrow: str = ""
    names: Sequence[str] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    number: int = 0


Script = Mapping[str, Sequence[ScriptLine]]
"""The lines of each member or role, in order."""


@dataclass(frozen=True)
class Played:
    """A turn of a rehearsal. The last one has no node: it is the conclusion, or the end of the group without one.

    Attributes:
        words: The action and its consequences.
        refused: Reason of a rejection; empty if the action was accepted. The speaker's next line is tried.
        left: Only in the last one: lines of the script that no turn used.
        heard_by: Other members that receive the message; None if all do.
    """

    turn: int
    node: str
    speaker: str
    words: str
    offered: Offer | None
    refused: str = ""
    left: Sequence[ScriptLine] = ()
    heard_by: Sequence[AgentId] | None = None


def read_script(text: str) -> Script:
    """Read the actions of members, one a line; `#` begins a comment. docs/teams.md lists the forms.

    Raises:
        InvalidInputError: A line has another form; the message names it.
    """
    script: dict[str, list[ScriptLine]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise InvalidInputError(f"Line {number} of the script is none of {_FORMS}.")
        said = ScriptLine(
            words=(found["words"] or "").strip(),
            arrow=found["arrow"] or found["does"] or "",
            names="".join(found["names"].split()).split(",") if found["names"] else (),
            fields=_fields(found["fields"] or "", number),
            number=number,
        )
        script.setdefault(found["who"], []).append(said)
    return script


def _fields(written: str, number: int) -> Mapping[str, str]:
    """Read the values of a line, quoted as in TOML or as bare words."""
    try:
        if not re.fullmatch(rf"(?:{_PAIR})*+\s*", written):
            raise ValueError
        values = {name: value.rstrip() for name, value in re.findall(_PAIR, written) if value}
        return {name: tomllib.loads(f"x = {value}")["x"] if value[0] in "'\"" else value for name, value in values.items()}
    except ValueError:
        raise InvalidInputError(
            f'Line {number} of the script fills in `{written.strip()}`; write `{{field = value, other = "in quotes"}}`.'
        ) from None


def rehearse(team: TeamSpec, script: Script) -> Iterator[Played]:
    """Play a team until its discussion has ended. Each line is for one turn of its member.

    Raises:
        InvalidInputError: The script has lines for an unknown member.
    """
    policy, charter = team.policy, _charter(team)
    members = [card.agent_id for card in charter.team_members]
    joining = [name for lines in script.values() for line in lines if line.arrow == "<-" for name in line.names]
    _check_names(script, [*members, *joining, *policy.role_numbers])
    left = {who: list(lines) for who, lines in script.items()}
    drafts: dict[AgentId, Discussion] = {}
    transcript, launched = Transcript(), GroupLaunched(at=_START, charter=charter)
    state = step(None, launched).state
    transcript.read(StoredEntry(0, Entry(event=launched, audience=(), state=state)))

    def play(event: Event, turn: int, speaker: AgentId, offered: Offer | None = None) -> Played:
        nonlocal state
        before, after = state, step(state, event, policy)
        state = after.state
        lines = transcript.read(StoredEntry(turn, Entry(event=event, audience=after.audience, state=state)))
        words = "; ".join(one.text if one.act == "discussion" else f"{one.act}: {one.text}" for one in lines)
        heard_by = None if {*before.hearing} <= {*after.audience} else [one for one in after.audience if one != speaker]
        return Played(turn, _node_of(policy, before), speaker, words, offered, heard_by=heard_by)

    while state.course is not None and state.phase in _LED:
        speaker, turn = state.floor[0], state.turn
        offered = offer(policy, state, speaker)
        assert offered is not None
        line = _next_line(left, policy, state, speaker, offered)
        try:
            yield play(_event(state, speaker, line, offered, drafts), turn, speaker, offered)
        except (ValidationError, IllegalEventError, InvalidInputError) as error:
            if line.number:
                why = f"{in_words(error, 'message')}." if isinstance(error, ValidationError) else error.message
                yield Played(turn, _node_of(policy, state), speaker, line.words, offered, why)
                continue
            yield play(_said(state, speaker, _NOTHING), turn, speaker, offered)
        while state.phase is Phase.ASSIGNED:  # tasks complete at once
            task = state.open_tasks[0]
            words = f"({task.assignee} does it)"
            result = InformTaskResult(task_id=task.task_id, outcome=TaskOutcome.DONE, task_conclusion=words)
            yield play(_said(state, task.assignee, result, task.turn), task.turn, task.assignee)
    unused = sorted(chain.from_iterable(left.values()), key=lambda line: line.number)
    if state.floor_holder is not None:
        forced = f" (forced: {state.forced})" if state.forced else ""
        yield Played(state.turn, "", state.floor_holder, f"states the conclusion{forced}", None, left=unused)
    else:
        assert isinstance(state.stage, Ended)
        yield Played(state.turn, "", "", f"the group has ended: {state.stage.reason}", None, left=unused)


def _node_of(policy: Policy, state: GroupState) -> str:
    assert state.course is not None
    return policy.nodes[state.course.node].name


def _event(state: GroupState, speaker: AgentId, line: ScriptLine, offered: Offer, drafts: dict[AgentId, Discussion]) -> Event:
    names = tuple(map(AgentId, line.names))
    if line.arrow == "lost":
        return MemberLost(at=_START, agent_id=speaker)
    if line.arrow == "silent":
        return _said(state, speaker, _NOTHING)
    if offered.again:
        return _said(state, speaker, drafts[speaker])
    if line.arrow == "<-":
        role = line.fields.get("role") or next(iter(offered.invites), None)
        return MemberJoined(at=_START, card=_card(names[0]), by=speaker, turn=state.turn, role=role, why=line.words)
    if offered.options:
        choice = names[0] if names else PASS if offered.about == "review" else offered.default
        members = tuple([AgentId(one.strip()) for one in line.fields.get("members", "").split(",") if one.strip()])
        return _said(state, speaker, Decision(choice=choice, content=line.words, members=members))
    if line.arrow == "=>":
        ids = (task_id_of_turn(state.turn, str(number)) for number in range(1, len(names) + 1))
        tasks = [TaskSpec(task_id=one, assignee=to, task_desc=line.words) for one, to in zip(ids, names, strict=True)]
        return _said(state, speaker, SyncTaskAssignment(tasks=tuple(tasks)))
    kinds = {blank.name: blank.kind for blank in offered.form}
    drafts[speaker] = Discussion(
        content=line.words or f"({speaker} speaks)",
        next_speaker=names[0] if line.arrow == ">" and len(names) == 1 else None,
        next_speakers=names if line.arrow == ">" and len(names) > 1 else (),
        go=names[0] if line.arrow == "->" else None,
        fields={name: read_value(kinds.get(name, "text"), value) for name, value in line.fields.items()},
        writes=dict.fromkeys(offered.writes, ""),
    )
    return _said(state, speaker, drafts[speaker])


def _check_names(script: Script, known: Iterable[str]) -> None:
    names = dict.fromkeys(known)
    unknown = [
        f"{who} (line {listed(str(line.number) for line in lines)}{nearest(who, names)})"
        for who, lines in script.items()
        if who not in names
    ]
    if unknown:
        there = f"members are called by their roles, and there are {listed(names)}"
        raise InvalidInputError(f"The script has lines for {', '.join(unknown)}: nobody is called so; {there}.")


def _next_line(
    left: Mapping[str, list[ScriptLine]], policy: Policy, state: GroupState, holder: AgentId, offered: Offer
) -> ScriptLine:
    """Return the next line for a member, by its name or one of its roles. A lost member with the floor is silent."""
    if holder not in state.living():
        return ScriptLine(arrow="silent")
    if offered.again or offered.say is not None:
        return ScriptLine(offered.say or "")
    roles = [policy.roles[number].name for number in state.members[state.number_of(holder)].roles]
    for who in dict.fromkeys((holder, *roles)):
        if left.get(who):
            return left[who].pop(0)
    return ScriptLine()


def _said(state: GroupState, sender: AgentId, payload: Payload, turn: int | None = None) -> Said:
    header = Header(
        message_id=MessageId(f"m{state.turn}-{sender}"),
        comm_id=_COMM,
        sender=sender,
        state=state.phase,
        turn=state.turn if turn is None else turn,
        after=0,
        sent_at=_START,
    )
    return Said(at=_START, message=Message(header=header, payload=payload))


def _card(agent: AgentId) -> AgentCard:
    return AgentCard(agent_id=agent, name=agent, description="A member of a rehearsal.", pool=PoolId(agent))


def _charter(team: TeamSpec) -> Charter:
    cast = tuple(Casting(role=filling.role, members=filling.names) for filling in team.fillings)
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
