"""What a member may say that is to speak. Routers hold messages to it; prompts, checks of answers and the documentation follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ioa.group import floor
from ioa.group.forms import Blank, blanks_of, check_fields, form_of
from ioa.group.gathering import check_question
from ioa.group.joining import invited_by
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.hearing import addressees
from ioa.group.policy.review import check_again, check_guards, is_draft, is_reviewed
from ioa.group.policy.turns import may_be_named, most_named
from ioa.group.policy.ways_out import offered_ways
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Ask, Asking, Choices, Discussing, Gathering, GroupState
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Pass,
    Pause,
    Payload,
    SyncTaskAssignment,
    Thinking,
)
from ioa.protocol.policy import END, Guard, Policy


class Offer(NamedTuple):
    """What a member may say now, with the floor, in a seat beside others, or asked to decide; it may always pass.

    Attributes:
        say: The words with which it has to open the node; None if it finds its own.
        next_speakers: Whom it may name as the next speaker. Whoever names nobody leaves it to the order.
        go: Where it may lead the group: nodes, or the end. Whoever names nothing stays, as long as the node goes on.
        may_conclude: Whether it may state the conclusion now.
        form: What it fills in.
        most_named: How many of `next_speakers` it may name at once, to speak side by side; 1 is no several.
        may_ask: Whether it may ask them a question.
        options: What it is asked to choose from; then it decides, and says nothing else.
        default: Which option stands if it does not choose.
        about: What it decides: the way out (`"exit"`), who speaks next (`"speaker"`), whether a draft is passed (`"review"`), or
            whether it steps in (`"watch"`).
        concluding: Whether the discussion has ended, and it is asked for the conclusion and for nothing else.
        addressees: To whom it may narrow what it says, of those that would hear it; empty where all hear all.
        guards: What its words must be like.
        reviewed: Whether what it says is a draft, which others hear once it is passed.
        members: Whom it may name when it steps in; the owner of the group is not to be removed.
        asks: Whether it may ask out of the group, and have the floor again with the answer.
        writes: What it may write on the board with what it says.
        invites: In which roles it may have others join the group.
        tasks: Whether it may give out tasks to any members, or wait for some, and has the floor again then.
        again: Tells the draft that was passed, and that it says again word for word; empty if none was. Its client does so.
    """

    say: str | None = None
    next_speakers: tuple[AgentId, ...] = ()
    go: tuple[str, ...] = ()
    may_conclude: bool = False
    form: tuple[Blank, ...] = ()
    most_named: int = 1
    may_ask: bool = False
    options: tuple[str, ...] = ()
    default: str = ""
    about: Ask | None = None
    concluding: bool = False
    addressees: tuple[AgentId, ...] = ()
    guards: tuple[Guard, ...] = ()
    reviewed: bool = False
    again: str = ""
    members: tuple[AgentId, ...] = ()
    asks: bool = False
    writes: tuple[str, ...] = ()
    invites: tuple[str, ...] = ()
    tasks: bool = False

    @property
    def kinds(self) -> frozenset[type[Payload]]:
        """The kinds of message that it may be said with."""
        if self.options:
            return _DECIDING
        if self.concluding:
            return _CONCLUDING
        talking = _ENDING if END in self.go and not self.reviewed else _TALKING
        return talking | (_ASKING if self.asks else _NONE) | (_WORKING if self.tasks else _NONE)

    def lets_reject(self, *, concludes: bool) -> bool:
        """Whether results may be rejected with what it says: who neither gives out tasks here nor concludes strikes none."""
        return self.tasks or concludes


_TALKING: frozenset[type[Payload]] = frozenset((Discussion, Pass, Thinking))
_ENDING = _TALKING | {ConcludeGroupDiscussion}
_NONE: frozenset[type[Payload]] = frozenset()
_ASKING: frozenset[type[Payload]] = frozenset((AskUser,))
_WORKING: frozenset[type[Payload]] = frozenset((SyncTaskAssignment, AsyncTaskAssignment, Pause))
_DECIDING: frozenset[type[Payload]] = frozenset((Decision, Pass, Thinking))
_CONCLUDING: frozenset[type[Payload]] = frozenset((Conclusion, Pass, Thinking))

TO_CONCLUDE = Offer(may_conclude=True, concluding=True)
"""What a member is offered that is to state the conclusion when the discussion has ended."""


def offer(policy: Policy, state: GroupState, agent_id: AgentId, *, narrows: bool = True) -> Offer | None:
    """Say what a member may say in the discussion now; None if it is not to speak, or the discussion has ended.

    To whom it may narrow a message takes a while to find out, and is left out for who does not ask.
    """
    stage, course = state.stage, state.course
    if course is None or agent_id not in state.floor:
        return None
    match stage:
        case Discussing():
            return offer_in(scene_of(policy, state), agent_id, narrows=narrows)
        case Gathering():
            node = policy.nodes[course.node]
            form = blanks_of(form_of(state, policy), state, policy)
            able = addressees(policy, state, agent_id) if narrows else ()
            return Offer(form=form, addressees=able, guards=node.guards, writes=node.writes)
        case Asking():
            members = state.hearing if stage.about == "watch" else ()
            roles = invited_by(policy, state, agent_id)
            return Offer(options=stage.options, default=stage.default, about=stage.about, members=members, invites=roles)
        case _:
            return None


def offer_in(scene: Scene, agent_id: AgentId, *, narrows: bool = True) -> Offer:
    """Say what the holder of the floor may say, in the scene that it is in; see `offer`."""
    if scene.course.opening:
        assert scene.node.opens is not None
        return Offer(say=scene.node.opens.say)
    if scene.course.draft is not None and scene.course.draft.passed:
        return Offer(again=scene.course.draft.digest)
    form, state = scene.node.form, scene.state
    number = state.number_of(agent_id)
    chosen = scene.course.offered or _choices(scene, number)
    return Offer(
        next_speakers=chosen.next_speakers,
        go=chosen.go,
        may_conclude=END in chosen.go and floor.concluder(state) == agent_id,
        form=blanks_of(form, state, scene.policy) if form else (),
        most_named=chosen.most_named,
        may_ask=chosen.most_named > 1 and not form,
        addressees=addressees(scene.policy, state, agent_id) if narrows else (),
        guards=scene.node.guards,
        writes=scene.node.writes,
        invites=invited_by(scene.policy, state, agent_id) if scene.node.invites else (),
        reviewed=scene.policy.reviews and is_draft(scene.policy, state, state.members[number]),
        asks=scene.node.asks,
        tasks=scene.node.tasks,
    )


def _choices(scene: Scene, me: int) -> Choices:
    """Return what a floor holder may choose, by where the group stands."""
    state, others = scene.state, may_be_named(scene, me)
    one_only = len(others) < 2 or is_reviewed(scene.policy, scene.node, state.members[me])
    most = 1 if one_only else most_named(scene, state.turns_left)
    names = tuple([scene.agent(number) for number in others])
    ways = _ways(scene, me)
    if END in ways and state.tasks and state.tasks_left(scene.agent(me)):
        ways = tuple([one for one in ways if one != END])
    return Choices(names, min(most, max(1, len(others))), ways)


def check_discussion(offered: Offer, said: Discussion) -> None:
    """Refuse what is not offered.

    Raises:
        IllegalEventError: It says what is.
    """
    if offered.again:
        check_again(offered.again, said)
        return
    names = said.next_speakers or (() if said.next_speaker is None else (said.next_speaker,))
    else_said = names or said.go is not None or said.fields or said.question or said.to or said.writes
    if offered.say is not None and (else_said or said.content != offered.say):
        raise IllegalEventError(RejectionCode.BAD_OPENING, f"The node opens with these words and nothing else: {offered.say}")
    if names and (why := _wrong_names(offered, said, names)):
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, why)
    if said.go is not None and said.go not in offered.go:
        legal = f"there are {', '.join(offered.go)}" if offered.go else "the policy leads on by itself"
        raise IllegalEventError(RejectionCode.BAD_EXIT, f"No way out that you may choose leads to {said.go}; {legal}.")
    if said.go is not None and names:
        raise IllegalEventError(RejectionCode.BAD_EXIT, "Choose a next speaker or a way out, and not both.")
    if said.question and not offered.may_ask:
        raise IllegalEventError(RejectionCode.BAD_FORM, "You cannot ask a question here: it goes to several whom a hub names.")
    check_question(said)
    check_content(offered, said)


def check_content(offered: Offer, said: Discussion) -> None:
    """Reject a message whose addressees, words, fields or board texts the node does not permit.

    Raises:
        IllegalEventError: Its message lists the permitted events.
    """
    wrong = [name for name in said.to if name not in offered.addressees]
    if wrong:
        heard = f"it is heard by {', '.join(offered.addressees)}" if offered.addressees else "it cannot be narrowed: leave `to` out"
        raise IllegalEventError(RejectionCode.BAD_ADDRESSEE, f"{', '.join(wrong)} would not hear this; {heard}.")
    for option in [option for field in said.question for option in field.options]:
        check_guards(offered.guards, option)
    check_guards(offered.guards, said.content, offered.form, said.fields, said.writes.values())
    check_fields(offered.form, said.fields)
    if unknown := [name for name in said.writes if name not in offered.writes]:
        there = f"there are {', '.join(offered.writes)}" if offered.writes else "nothing is written here"
        raise IllegalEventError(RejectionCode.BAD_FORM, f"This node does not write {', '.join(unknown)}; {there}.")


def check_nothing_left(scene: Scene, sender: AgentId) -> None:
    """Reject an end while tasks are open that the sender knows; they would be cancelled.

    Raises:
        IllegalEventError: It names them.
    """
    left = scene.state.tasks_left(sender)
    if left and any(way.by == "speaker" and way.to == END for way in scene.node.exits):
        raise IllegalEventError(RejectionCode.TASKS_OPEN, f"Tasks are still open: {', '.join(task.task_id for task in left)}.")


def _wrong_names(offered: Offer, said: Discussion, names: Sequence[AgentId]) -> str:
    """Say why members cannot be named; empty if they can."""
    wrong = [name for name in names if name not in offered.next_speakers]
    if wrong:
        legal = f"name one of {', '.join(offered.next_speakers)}" if offered.next_speakers else "the policy chooses: name nobody"
        return f"{', '.join(wrong)} cannot be the next speaker; {legal}."
    if said.next_speakers and said.next_speaker is not None:
        return "Name one next speaker, or several who speak side by side, and not both."
    if len(set(names)) < len(names):
        return "Name each of them once."
    if said.next_speakers and (offered.most_named == 1 or len(names) > offered.most_named):
        return f"Not so many can speak side by side: at most {offered.most_named}." if offered.most_named > 1 else _ONE_ONLY
    return ""


_ONE_ONLY = "Nobody speaks side by side here: name one, as `next_speaker`."


def check_end(offered: Offer, said: ConcludeGroupDiscussion) -> None:
    """Refuse an end that is not offered.

    Raises:
        IllegalEventError: It says whose it is.
    """
    if offered.reviewed and END in offered.go:
        raise IllegalEventError(
            RejectionCode.OFF_COURSE, f"What you say is reviewed first: end it by a discussion that goes to {END}."
        )
    if END not in offered.go:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "The policy ends the discussion, and offers you no end now.")
    if said.conclusion is not None and not offered.may_conclude:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "The conclusion is stated by who leads; end the discussion without one.")
    check_guards([one for one in offered.guards if not one.not_empty], said.content)
    if said.conclusion is not None:
        check_guards(offered.guards, said.conclusion.content)


def _ways(scene: Scene, speaker: int) -> tuple[str, ...]:
    """Return where the speaker may lead the group. In a hub that is the hub's alone."""
    turns = scene.node.turns
    if turns.mode == "hub" and turns.by is not None and scene.holders(turns.by)[:1] != (speaker,):
        return ()
    ways = [way for way in scene.node.exits if way.by == "speaker"]
    return tuple([way.to for way in offered_ways(scene, ways)]) if ways else ()
