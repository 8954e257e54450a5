"""Playing a team in memory, with no system and no model: who speaks when, by the same machine that leads real groups.

Members are called as their roles. They say what a script has them say, and else that they speak; where nothing is scripted they
choose nothing, so that the policy leads. What is refused is played as refused, as a router would, also what is said
again.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Literal, NamedTuple

from pydantic import ValidationError

from ioa.errors import InvalidInputError
from ioa.group.events import (
    Event,
    GroupLaunched,
    MemberJoined,
    MemberLost,
    MessageRefused,
    RepetitionRefused,
    Said,
    SubgroupClosed,
    SubgroupOpened,
)
from ioa.group.forms import Blank, read_value
from ioa.group.machine import step
from ioa.group.policy.let_pass import let_pass
from ioa.group.policy.offer import Offer, offer
from ioa.group.policy.part import silence_of
from ioa.group.policy.review import PASS
from ioa.group.policy.seating import seated
from ioa.group.rejection import MAX_REFUSALS, IllegalEventError, RejectionCode
from ioa.group.state import Asking, Charter, Ended, GroupState, Limits, OpenTask
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, PoolId, comm_id_of_task, task_id_of_turn
from ioa.protocol.messages import (
    Conclusion,
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
from ioa.protocol.policy import Casting, FieldValue
from ioa.protocol.policy_check import listed, nearest
from ioa.protocol.team import TeamSpec
from ioa.protocol.validation_errors import in_words
from ioa.repetition import sketches_of

_START = datetime(2026, 1, 1, tzinfo=UTC)
_COMM, _GOAL = CommId("rehearsal"), GoalId("rehearsal")
_QUOTED = r"""=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_LINE = re.compile(
    r"(?P<who>[A-Za-z0-9_-]+)\s*(?:!\s*(?P<does>silent|lost)|"
    r"(?:(?P<how>->|=>|>|<-)\s*(?P<what>[A-Za-z0-9_-]+(?:\s*,\s*[A-Za-z0-9_-]+)*)\s*)?"
    rf"(?:\{{(?P<fields>(?:{_QUOTED}|[^}}])*+)\}}\s*)?:(?P<words>.*))"
)
_PAIR = re.compile(
    r"""\s*+(?:(?P<name>[A-Za-z0-9_-]++)\s*+=\s*+(?P<value>"(?:[^"\\]|\\.)*+"|'[^']*+'|[^,"'{\[\s][^,]*+|)\s*+)?(?:,|\Z)"""
)
_FORMS = (
    "`who: words`, `who > name: words`, `who -> node: words`, `who => name: task`, `who {field = value}: words`, "
    "`who <- newcomer: words`, `who !silent` or `who !lost`"
)
_LED = (Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING)


@dataclass(frozen=True)
class ScriptLine:
    """What a script has somebody do in a turn: say words, and perhaps name who is next, choose the way out, or fill a form in.

    Whoever is asked to decide chooses the way out, or the next speaker, of its line.

    Attributes:
        joins: Who is to join the group.
        tasks_for: Who is given its words as a task, instead of hearing them; then it speaks again.
        number: Where it stands in the script.
        does: Whether it says nothing instead, or is lost.
    """

    words: str = ""
    to: str | None = None
    go: str | None = None
    joins: str | None = None
    tasks_for: Sequence[str] = ()
    fields: Mapping[str, str | None] = field(default_factory=dict)
    number: int = 0
    does: Literal["silent", "lost"] | None = None


Script = Mapping[str, Sequence[ScriptLine]]
"""The lines of each member or role, in order."""


@dataclass(frozen=True)
class Played:
    """A turn of a rehearsal. The last one has no node: it is the conclusion, or how the group ended without one.

    Attributes:
        refused: Why what was said was refused; empty if it was not. Who said it has its turn once more, as long as it has tries.
        left: Of the last one: the lines of the script that nobody came to say.
        heard_by: Who else heard it; None if all did.
        removed: Who is out of the group by it.
    """

    turn: int
    node: str
    speaker: str
    words: str
    offered: Offer | None
    refused: str = ""
    left: Sequence[ScriptLine] = ()
    heard_by: Sequence[AgentId] | None = None
    removed: Sequence[AgentId] = ()


def read_script(text: str) -> Script:
    """Read what members say, a line each; one with `#` is a comment.

    `outliner -> finish: That is all.` leads to a node, `host > gardener, botanist: And you?` names who is next,
    `lead => ann, bob: Weld a seam.` gives each of them a task, which they do at once, or which a stored team does
    (`lead => ann {team = debate}: …`), which is not played; `ada {vote = bob}: He did it.` fills a form
    in, with values in quotes or without, and leaves out what has none (`{vote = }`); `host <- eve {role = guest}: Help us.` has
    somebody join; `bob !silent` says nothing, and `bob !lost` is lost.

    Raises:
        InvalidInputError: It names the line that is none.
    """
    script: dict[str, list[ScriptLine]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise InvalidInputError(f"Line {number} of the script is none of {_FORMS}.")
        how, what = found["how"], "".join((found["what"] or "").split()) or None
        said = ScriptLine(
            words=(found["words"] or "").strip(),
            to=what if how == ">" else None,
            go=what if how == "->" else None,
            joins=what if how == "<-" else None,
            tasks_for=what.split(",") if what is not None and how == "=>" else (),
            fields=_fields(found["fields"] or "", number),
            number=number,
            does={"silent": "silent", "lost": "lost"}.get(found["does"]),  # type: ignore[arg-type]
        )
        script.setdefault(found["who"], []).append(said)
    return script


def _fields(written: str, number: int) -> Mapping[str, str | None]:
    """Read what a line fills in, in quotes as TOML has them, or as bare words; what has no value is left out."""
    fields: dict[str, str | None] = {}
    at = 0
    while at < len(written):
        found = _PAIR.match(written, at)
        try:
            if found is None:
                raise ValueError
            if found["name"] is not None:
                value = found["value"].rstrip()
                fields[found["name"]] = tomllib.loads(f"x = {value}")["x"] if value[:1] in ("'", '"') else value or None
        except ValueError:
            what = written[at:].strip()
            raise InvalidInputError(
                f'Line {number} of the script fills in `{what}`; write `{{field = value, other = "in quotes"}}`.'
            ) from None
        at = found.end()
    return fields


def rehearse(team: TeamSpec, script: Script) -> Iterator[Played]:
    """Play a team until its discussion has ended. Each line is for one turn of its member.

    Raises:
        InvalidInputError: The script has lines for somebody who is not there.
    """
    charter = _charter(team)
    members = [card.agent_id for card in charter.team_members]
    joining = [line.joins for lines in script.values() for line in lines if line.joins is not None]
    _check_names(script, [*members, *joining, *team.policy.role_numbers])
    left = {who: list(lines) for who, lines in script.items()}
    drafts: dict[AgentId, Discussion] = {}
    state = step(None, GroupLaunched(at=_START, charter=charter)).state
    refusals, tries = 0, Counter[tuple[int, AgentId]]()
    while state.course is not None and state.phase in _LED:
        speaker = state.floor[0]
        offered = offer(team.policy, state, speaker)
        assert offered is not None
        line = ScriptLine() if offered.again else _line(left, team, state, speaker, offered)
        turn, node = state.turn, team.policy.nodes[state.course.node].name
        before = state
        words = _falls_silent(team, state, speaker, line.does, offered) if line.does else _words(line, speaker, offered)
        state, heard_by, refused, repeats = _attempt(state, team, speaker, line, offered, drafts)
        if refused:
            refusals += 1
            tries[turn, speaker] += 1
            spent = tries[turn, speaker] == MAX_REFUSALS or not line.number
            if event := _after_refusal(state, speaker, offered, refusals, repeats, spent=spent):
                state, heard_by = _stepped(state, event, team, speaker)
            if state.turn == turn and speaker in state.floor:
                heard_by = None
            elif line.number:
                yield Played(turn, node, speaker, words, offered, refused)
                words, offered, refused = _spent(team, before, speaker), None, ""
            else:  # nothing that it could say is legal
                words, refused = _falls_silent(team, before, speaker, "silent", offered), ""
        removed = [one for one in before.hearing if one not in state.hearing]
        yield Played(turn, node, speaker, words, offered, refused, heard_by=heard_by, removed=removed)
        while state.phase is Phase.ASSIGNED:
            done, state = _done(state, team, node)
            yield done
    yield _end(state, team, sorted(chain.from_iterable(left.values()), key=lambda line: line.number))


_SILENCE = Pass(cause=PassCause.NOTHING_TO_ADD)


class _Attempt(NamedTuple):
    """What came of it that somebody has said something: who else heard it (None: all), or why it was refused."""

    state: GroupState
    heard_by: Sequence[AgentId] | None = None
    refused: str = ""
    repeats_turn: int | None = None


def _attempt(
    state: GroupState, team: TeamSpec, speaker: AgentId, line: ScriptLine, offered: Offer, drafts: dict[AgentId, Discussion]
) -> _Attempt:
    """Say a line, or a draft once more that was passed."""
    try:
        event = _event(state, speaker, line, offered) if not offered.again else _said(state, speaker, drafts[speaker])
        if isinstance(event, Said) and isinstance(event.message.payload, Discussion):
            drafts[speaker] = event.message.payload
        return _Attempt(*_stepped(state, event, team, speaker))
    except ValidationError as error:
        return _Attempt(state, refused=f"{in_words(error, 'message')}.")
    except IllegalEventError as error:
        return _Attempt(state, refused=error.message, repeats_turn=error.repeats_turn)
    except InvalidInputError as error:
        return _Attempt(state, refused=error.message)


def _after_refusal(
    state: GroupState, speaker: AgentId, offered: Offer, number: int, repeats_turn: int | None, *, spent: bool
) -> Event | None:
    """Return what follows a refusal: a router puts some on record, and whoever has no tries left passes; else None."""
    message_id = MessageId(f"refused-{number}")
    if offered.options:
        return MessageRefused(at=_START, by=speaker, turn=state.turn, message_id=message_id, code=RejectionCode.BAD_DECISION)
    if spent:
        return _said(state, speaker, _SILENCE)
    if repeats_turn is None:
        return None
    return RepetitionRefused(at=_START, by=speaker, turn=state.turn, message_id=message_id, repeats_turn=repeats_turn)


def _spent(team: TeamSpec, state: GroupState, speaker: AgentId) -> str:
    """Say what stands in the place of what was refused too often."""
    if isinstance(state.stage, Asking):
        return f"(its tries are used up: {state.stage.default} stands)"
    return f"(its tries are used up: it {_falls_silent(team, state, speaker, 'silent')[1:]}"


def _stepped(state: GroupState, event: Event, team: TeamSpec, speaker: AgentId) -> tuple[GroupState, Sequence[AgentId] | None]:
    """Take an event; return also who else has heard it, or None if all have."""
    after = step(state, let_pass(team.policy, state, event), team.policy)
    heard_by_all = {*state.hearing} <= {*after.audience}
    return after.state, None if heard_by_all else [agent_id for agent_id in after.audience if agent_id != speaker]


def _falls_silent(
    team: TeamSpec, state: GroupState, speaker: AgentId, how: Literal["silent", "lost"], offered: Offer | None = None
) -> str:
    if how == "lost":
        return "(is lost)"
    if offered is not None and offered.options:
        return f"(says nothing: {offered.default} stands)"
    shown = silence_of(team.policy, state, speaker)
    return f"(says nothing; others are shown: {shown})" if shown else "(says nothing)"


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


def _event(state: GroupState, speaker: AgentId, line: ScriptLine, offered: Offer) -> Event:
    match line.does:
        case "lost":
            return MemberLost(at=_START, agent_id=speaker)
        case "silent":
            return _said(state, speaker, _SILENCE)
        case None if line.joins is not None:
            role = _role_of_newcomer(line, offered)
            return MemberJoined(at=_START, card=_card(AgentId(line.joins)), by=speaker, turn=state.turn, role=role, why=line.words)
        case None:
            said = _said(state, speaker, _spoken(line, state, speaker, offered))
            # What a script leaves open is made up, in the same words each time.
            return said.model_copy(update={"sketches": sketches_of(said.message.payload)}) if line.words else said


def _role_of_newcomer(line: ScriptLine, offered: Offer) -> str | None:
    return line.fields.get("role") or next(iter(offered.invites), None)


def _done(state: GroupState, team: TeamSpec, node: str) -> tuple[Played, GroupState]:
    """Have the first of the open tasks be done, by its assignee or by the stored team that it names, which is not played."""
    task = state.open_tasks[0]
    words = f"(the team {task.team} does it; its own file says how)" if task.team else f"({task.assignee} does it)"
    try:
        state, end = _served(state, team, task, words) if task.team else (state, _reported(state, task, TaskOutcome.DONE, words))
    except IllegalEventError as error:  # too little is left for a nested team
        words = error.message
        end = _reported(state, task, TaskOutcome.FAILED, words)
    after = step(state, end, team.policy)
    heard_by = [one for one in after.audience if one != task.assignee] if after.audience != state.hearing else None
    return Played(task.turn, node, task.assignee, words, None, heard_by=heard_by), after.state


def _reported(state: GroupState, task: OpenTask, outcome: Literal[TaskOutcome.DONE, TaskOutcome.FAILED], words: str) -> Event:
    result = InformTaskResult(task_id=task.task_id, outcome=outcome, task_conclusion=words)
    return _said(state, task.assignee, result, task.turn)


def _served(state: GroupState, team: TeamSpec, task: OpenTask, conclusion: str) -> tuple[GroupState, Event]:
    """Open the nested group of the team that a task names, and return what ends it."""
    subgroup = comm_id_of_task(state.comm_id, task.task_id)
    opened = SubgroupOpened(at=_START, task_id=task.task_id, by=task.assignee, subgroup=subgroup)
    ended = SubgroupClosed(at=_START, task_id=task.task_id, subgroup=subgroup, reason=Reason.CONCLUDED, content=conclusion)
    return step(state, opened, team.policy).state, ended


def _spoken(line: ScriptLine, state: GroupState, speaker: AgentId, offered: Offer) -> Discussion | Decision | SyncTaskAssignment:
    """Say a line. What is asked for and is not scripted is filled in with what comes first, and chosen by default."""
    if offered.options:
        members = tuple([AgentId(one.strip()) for one in (line.fields.get("members") or "").split(",") if one.strip()])
        return Decision(choice=_choice(line, offered), content=line.words, members=members)
    if line.tasks_for:
        given = [(task_id_of_turn(state.turn, str(number)), AgentId(name)) for number, name in enumerate(line.tasks_for, 1)]
        served_by = line.fields.get("team")
        specs = [TaskSpec(task_id=one, assignee=to, task_desc=line.words, team=served_by) for one, to in given]
        return SyncTaskAssignment(tasks=tuple(specs))
    to = [AgentId(name) for name in line.to.split(",")] if line.to else []
    return Discussion(
        content=line.words or f"({speaker} speaks)",
        next_speaker=to[0] if len(to) == 1 else None,
        next_speakers=tuple(to) if len(to) > 1 else (),
        go=line.go,
        fields=_filled_in(line, offered),
        writes=dict.fromkeys(offered.writes, ""),
    )


def _choice(line: ScriptLine, offered: Offer) -> str:
    """Say what is chosen: by default what the policy does, and of drafts that they are passed."""
    return line.go or line.to or (PASS if offered.about == "review" else offered.default)


def _filled_in(line: ScriptLine, offered: Offer) -> dict[str, FieldValue]:
    scripted = {name: value for name, value in line.fields.items() if value is not None}
    left_out = line.fields.keys() - scripted.keys()
    asked = {one.name: one for one in offered.form if one.name in scripted or (one.required and one.name not in left_out)}
    filled = {name: _filled(blank, scripted.get(name)) for name, blank in asked.items()}
    return filled | {name: value for name, value in scripted.items() if name not in asked}


def _filled(blank: Blank, written: str | None) -> FieldValue:
    """Read what a script has filled in, or make up what comes first."""
    if written is not None:
        return read_value(blank.kind, written)
    match blank.kind:
        case "yes_no":
            return False
        case "number":
            return blank.lowest if blank.lowest is not None else min(0, blank.highest or 0)
        case "text":
            return "…"
        case _:
            return next(iter(blank.values), "")


def _words(line: ScriptLine, speaker: AgentId, offered: Offer) -> str:
    """Show what was said, with what was filled in or chosen, and what of that was made up."""
    if line.joins is not None:
        joins = f"has {line.joins} join as {_role_of_newcomer(line, offered)}"
        return f"{joins} ({line.words})" if line.words else joins
    if offered.options:
        decided = " ".join(filter(None, (f"decides: {_choice(line, offered)}", line.fields.get("members"))))
        return f"{decided} ({line.words})" if line.words else decided
    if offered.again:
        return "(says it again)"
    if line.tasks_for:
        served_by = f", which the team {line.fields['team']} serves" if line.fields.get("team") else ""
        return f"gives {', '.join(line.tasks_for)} a task{served_by}: {line.words}"
    told = {name: str(value).lower() if isinstance(value, bool) else value for name, value in _filled_in(line, offered).items()}
    filled = ", ".join(f"{name} = {value}{'' if name in line.fields else ' (made up)'}" for name, value in told.items())
    written = f"writes {', '.join(offered.writes)} (made up)" if offered.writes else ""
    words, more = line.words or f"({speaker} speaks)", "; ".join(filter(None, (filled, written)))
    return f"{words} [{more}]" if more else words


def _end(state: GroupState, team: TeamSpec, left: Sequence[ScriptLine]) -> Played:
    if state.floor_holder is not None:
        concluder, turn = state.floor_holder, state.turn
        forced = f" (forced: {state.forced})" if state.forced else ""
        step(state, _said(state, concluder, Conclusion(content="Done.")), team.policy)
        return Played(turn, "", concluder, f"states the conclusion{forced}", None, left=left)
    assert isinstance(state.stage, Ended)
    return Played(state.turn, "", "", f"the group has ended: {state.stage.reason}", None, left=left)


def _line(left: Mapping[str, list[ScriptLine]], team: TeamSpec, state: GroupState, holder: AgentId, offered: Offer) -> ScriptLine:
    """Take the next line that is for a member by its name, or by one of its roles.

    An opening is said as the policy has it. Who is lost and has kept the floor, since nobody else is there, says nothing.
    """
    if holder not in state.living():
        return ScriptLine(does="silent")
    if offered.say is not None:
        return ScriptLine(offered.say)
    roles = [team.policy.roles[number].name for number in state.members[state.number_of(holder)].roles]
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
    members, cast = seated(team.policy, _COMM, (leader, *(agent for casting in cast for agent in casting.members)), cast)
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
