"""Several members speak side by side, once each, for one turn: who has a seat, and what closes it.

In a free group whoever names several asks them, and gets the floor back with the tally. Under a policy the seats are the same, and
`ioa.group.policy.rules` says what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from ioa.group import floor, forms
from ioa.group.events import MemberLost, Said
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Gathering, GroupState, Seat, Votes
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.protocol.policy import FormField
from ioa.protocol.policy_check import faults_of


def gather(
    state: GroupState,
    agents: Mapping[AgentId, timedelta | None],
    at: datetime,
    *,
    votes: Votes | None = None,
    form: tuple[FormField, ...] = (),
) -> GroupState:
    """Give several members a seat each, unless no turn, or no budget, is left for one of them.

    Args:
        state: The group.
        agents: Who is to speak, and how long each has for it; None: as its card says, or its group.
        at: When.
        votes: What is counted for a member that has asked them; its turn is this one.
        form: What that member has asked.
    """
    if state.turns_left < len(agents):
        return floor.NO_TURN_LEFT.apply(state, at)
    if floor.cannot_pay(state, len(agents)):
        return floor.BUDGET_SPENT.apply(state, at)
    seats = tuple([Seat(agent_id=agent, until=floor.until(state, agent, at, within)) for agent, within in agents.items()])
    stage = Gathering(seats=seats, since=at, votes=votes, form=form)
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1})


def ask(state: GroupState, said: Said, payload: Discussion) -> GroupState:
    """Have the members that a message names speak side by side; what it asks was found to make sense."""
    votes = forms.no_votes(state.turn + 1, said.message.header.sender, payload.question)
    return gather(state, dict.fromkeys(payload.next_speakers), said.at, votes=votes, form=payload.question)


def check_names(state: GroupState, sender: AgentId, payload: Discussion) -> None:
    """Refuse seats that cannot be given.

    Raises:
        IllegalEventError: It says why.
    """
    named, willing = payload.next_speakers, state.living()
    why = ""
    if payload.next_speaker is not None:
        why = "Name one next speaker, or several who speak side by side, and not both"
    elif len(set(named)) < len(named) or sender in named or not set(named) <= set(willing):
        others = ", ".join(one for one in willing if one != sender)
        why = (
            f"{', '.join(named)} cannot speak side by side: name other members that are there, once each ({others or 'nobody is'})"
        )
    elif len(named) >= state.turns_left:
        why = f"{len(named)} cannot speak side by side: {state.turns_left - 1} turns are left after this one"
    if why:
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, f"{why}.")


def check_question(payload: Discussion) -> None:
    """Refuse a question that nobody is asked, or that cannot be answered.

    Raises:
        IllegalEventError: It says what is wrong with it.
    """
    if not payload.question:
        return
    faults = list(faults_of(payload.question))
    faults += [
        f"the field {one.name!r} has a `role`, and only policies know roles" for one in payload.question if one.role is not None
    ]
    if not payload.next_speakers:
        faults.append("a question goes to those whom `next_speakers` names")
    if faults:
        raise IllegalEventError(RejectionCode.BAD_FORM, f"This cannot be asked: {'; '.join(faults)}.")


def answer(state: GroupState, said: Said, payload: Discussion) -> GroupState:
    """Take the answer of a seat in a free group."""
    stage, sender = state.stage, said.message.header.sender
    assert isinstance(stage, Gathering)
    check_answer(payload)
    if payload.to:
        raise IllegalEventError(RejectionCode.BAD_ADDRESSEE, "No policy leads this group: all hear what is said, leave `to` out.")
    forms.check_unwritten(payload.writes)
    forms.check_fields(forms.blanks_of(stage.form, state), payload.fields)
    changed = {**floor.turn_taken(state), "monologue": None, "stage": without(counted(stage, payload), (sender,))}
    return _go_on(state.model_copy(update=changed), said.at)


def check_answer(payload: Discussion) -> None:
    """Refuse an answer that leads on.

    Raises:
        IllegalEventError: It does.
    """
    if payload.next_speaker is not None or payload.next_speakers:
        why = "You are one of several who speak side by side: name nobody, the floor goes on when all have spoken."
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, why)
    if payload.go is not None:
        raise IllegalEventError(RejectionCode.BAD_EXIT, "While several speak side by side nobody chooses a way out.")
    check_question(payload)


def counted(stage: Gathering, payload: Discussion) -> Gathering:
    """Count an answer, where a member has asked for it."""
    if stage.votes is None:
        return stage
    return stage.model_copy(update={"votes": forms.with_answer(stage.votes, stage.form, payload.fields)})


def without(stage: Gathering, agents: Iterable[AgentId]) -> Gathering:
    """Close seats."""
    gone = set(agents)
    return stage.model_copy(update={"seats": tuple([seat for seat in stage.seats if seat.agent_id not in gone])})


def silenced(stage: Gathering, agents: Sequence[AgentId]) -> Gathering:
    """Close the seats of members that say nothing."""
    closed = without(stage, agents)
    if stage.votes is None:
        return closed
    votes = stage.votes.model_copy(update={"silent": (*stage.votes.silent, *agents)})
    return closed.model_copy(update={"votes": votes})


def overdue(stage: Gathering, at: datetime) -> tuple[AgentId, ...]:
    """Return whose time is up."""
    return tuple([seat.agent_id for seat in stage.seats if seat.until <= at])


def skip(state: GroupState, agents: Sequence[AgentId], at: datetime, *, silences: int = 0) -> GroupState:
    """Go on in a free group without the answers of some; so many of them were silent, or the group is given up."""
    assert isinstance(state.stage, Gathering)
    count = state.silences + silences
    if silences and count >= floor.ROUNDS_OF_SILENCE * len(state.members):
        return floor.end(state, Reason.MEMBER_LOST, "No member of the group speaks any more.", at)
    return _go_on(state.model_copy(update={"stage": silenced(state.stage, agents), "silences": count}), at)


def lose(state: GroupState, lost: MemberLost) -> GroupState:
    """Go on in a free group without the answer of a lost member."""
    has_seat = lost.agent_id in state.floor
    return skip(state, (lost.agent_id,), lost.at) if has_seat else state


def _go_on(state: GroupState, at: datetime) -> GroupState:
    """Give the floor back to who has asked, once all seats are closed."""
    stage = state.stage
    assert isinstance(stage, Gathering) and stage.votes is not None
    if stage.seats:
        return state
    return floor.give_back(state.model_copy(update={"tally": stage.votes}), stage.votes.by, at)
